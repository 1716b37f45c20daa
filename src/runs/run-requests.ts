import type { Catalogue } from '../catalogue/endpoint.js';
import { type CompanyKey, describeCompany, keyText } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Transaction } from '../db/transaction.js';
import { Prisma } from '../generated/prisma/client.js';
import { CHECKPOINT_MAX_AGE_MS } from '../walks/walk-checkpoint.js';
import { type EarlierWalk, planWalks } from './plan.js';
import type { RunTrigger } from './run-view.js';
import { nextSyncsAfter, type Schedule } from './schedule.js';

/** What is asked for, of every company alike. */
export interface RunWish {
  readonly trigger: RunTrigger;
  /** `resume` unless said. */
  readonly mode?: 'resume' | 'full';
  /** Those of the catalogue unless said. */
  readonly resources?: readonly string[];
  /** Only companies that are due, and when they are again. Unless said, that is set only where it never was. */
  readonly nextSyncOf?: (company: CompanyKey) => Date;
}

export interface RequestContext {
  readonly catalogue: Catalogue;
  readonly schedule: Schedule;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface RequestedRun {
  readonly id: string;
  readonly epoch: bigint;
}

/** What became of a request, by company (keyText). */
export type RequestAnswers = ReadonlyMap<string, RequestedRun | MusterError>;

/** A connection as a request for a run finds it. */
interface Connection extends CompanyKey {
  readonly status: string;
  readonly createdAt: Date;
  readonly nextSyncAt: Date | null;
}

interface LastRun extends CompanyKey, RequestedRun {
  readonly status: string;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
}

/**
 * The queued or running run of each company, or a new one; one that waits to retry starts now. For one that cannot be synced, the
 * error that says why: company_paused, reauthorization_required. A company that is gone or not due has no answer, and with `skipHeld`
 * neither has one whose connection somebody else holds just now: who asks for many waits for nobody.
 *
 * Many companies take the same few statements as one, by the same texts: each new text is planned anew. Their connections are held
 * until the transaction ends, so that one request at a time decides whether a run is added.
 */
export async function requestRuns(
  tx: Transaction,
  companies: readonly CompanyKey[],
  wish: RunWish,
  context: RequestContext,
  { skipHeld = false } = {},
): Promise<RequestAnswers> {
  const connections = await holdConnections(tx, companies, wish.nextSyncOf !== undefined, skipHeld);
  const syncable = connections.filter(({ status }) => status === 'active');
  const answers = new Map<string, RequestedRun | MusterError>(
    connections.filter(({ status }) => status !== 'active').map((each) => [keyText(each), refusalOf(each)]),
  );
  const lastRuns = await lastRunsOf(tx, syncable);
  const active = lastRuns.filter(({ status }) => status === 'queued' || status === 'running');
  await hasten(tx, active);
  for (const run of active) answers.set(keyText(run), run);
  const idle = syncable.filter((company) => !answers.has(keyText(company)));
  for (const run of await createRuns(tx, idle, lastRuns, wish, context)) answers.set(keyText(run), run);
  const moved = wish.nextSyncOf ? syncable : idle.filter(({ nextSyncAt }) => nextSyncAt === null);
  if (moved.length > 0) await setNextSyncs(tx, moved, wish.nextSyncOf ?? nextSyncsAfter(context.schedule, context.now));
  return answers;
}

function holdConnections(
  tx: Transaction,
  companies: readonly CompanyKey[],
  onlyDue: boolean,
  skipHeld: boolean,
): Promise<Connection[]> {
  return tx.$queryRaw`
    SELECT environment, company_id AS "companyId", status, created_at AS "createdAt", next_sync_at AS "nextSyncAt"
    FROM muster.connections c JOIN ${rowsOf(companies)} USING (environment, company_id)
    WHERE NOT ${onlyDue} OR next_sync_at <= now()
    FOR UPDATE OF c ${skipHeld ? Prisma.sql`SKIP LOCKED` : Prisma.empty}`;
}

/** Of each company its active run or else its last one. By LATERAL, which looks them up, however many runs there are. */
async function lastRunsOf(tx: Transaction, companies: readonly CompanyKey[]): Promise<LastRun[]> {
  if (companies.length === 0) return [];
  return tx.$queryRaw`
    SELECT last.id, last.epoch, last.environment, last.company_id AS "companyId", last.status, last.created_at AS "createdAt",
      last.finished_at AS "finishedAt"
    FROM ${rowsOf(companies)} CROSS JOIN LATERAL (
      (SELECT r.* FROM muster.runs r
       WHERE r.environment = asked.environment AND r.company_id = asked.company_id AND r.status IN ('queued', 'running') LIMIT 1)
      UNION ALL
      (SELECT r.* FROM muster.runs r
       WHERE r.environment = asked.environment AND r.company_id = asked.company_id ORDER BY r.seq DESC LIMIT 1)
      LIMIT 1
    ) last`;
}

async function hasten(tx: Transaction, active: readonly LastRun[]): Promise<void> {
  if (active.length === 0) return;
  const ids = active.map(({ id }) => id);
  await tx.$executeRaw`UPDATE muster.runs SET start_after = now() WHERE id = ANY(${ids}::uuid[]) AND start_after > now()`;
}

async function createRuns(
  tx: Transaction,
  companies: readonly Connection[],
  lastRuns: readonly LastRun[],
  { trigger, mode = 'resume', resources }: RunWish,
  { catalogue, now }: RequestContext,
): Promise<(CompanyKey & RequestedRun)[]> {
  if (companies.length === 0) return [];
  const lastWalks = mode === 'resume' ? await unfinishedWalks(tx, companies, lastRuns, now) : [];
  const runs = await tx.$queryRaw<(CompanyKey & RequestedRun)[]>`
    INSERT INTO muster.runs (environment, company_id, trigger, mode)
    SELECT environment, company_id, ${trigger}, ${mode} FROM ${rowsOf(companies)}
    RETURNING id, epoch, environment, company_id AS "companyId"`;
  const planned = runs.flatMap((run) => {
    const earlier = lastWalks.filter((walk) => keyText(walk) === keyText(run));
    const walks = planWalks({ catalogue, mode, lastWalks: earlier, ...(resources && { resources }) });
    return walks.map((walk, position) => ({ ...walk, run, position }));
  });
  const walks = await tx.$queryRaw<{ id: string; runId: string; position: number }[]>`
    INSERT INTO muster.walks (run_id, environment, company_id, resource, position)
    SELECT * FROM unnest(${planned.map(({ run }) => run.id)}::uuid[], ${planned.map(({ run }) => run.environment)}::text[],
      ${planned.map(({ run }) => run.companyId)}::uuid[], ${planned.map(({ resource }) => resource)}::text[],
      ${planned.map(({ position }) => position)}::int[])
    RETURNING id, run_id AS "runId", position`;
  for (const { run, position, continues } of planned) {
    const to = walks.find((walk) => walk.runId === run.id && walk.position === position);
    if (continues) await takeOverCheckpoint(tx, continues, to!.id);
  }
  return runs;
}

/** The walks of the last runs that may be gone on from: of one that succeeded, nothing is left to do. */
async function unfinishedWalks(tx: Transaction, companies: readonly Connection[], lastRuns: readonly LastRun[], now: number) {
  const connectedAt = new Map(companies.map((company) => [keyText(company), company.createdAt]));
  const resumable = lastRuns.filter((run) => {
    const since = connectedAt.get(keyText(run));
    // What was before a company was removed is gone.
    if (run.status === 'succeeded' || since === undefined || run.createdAt < since) return false;
    return run.finishedAt !== null && run.finishedAt.getTime() >= now - CHECKPOINT_MAX_AGE_MS;
  });
  if (resumable.length === 0) return [];
  return tx.$queryRaw<(EarlierWalk & CompanyKey)[]>`
    SELECT id, environment, company_id AS "companyId", resource, status = 'succeeded' AS succeeded
    FROM muster.walks WHERE run_id = ANY(${resumable.map(({ id }) => id)}::uuid[])`;
}

/**
 * The new walk goes on where the earlier one stopped: checkpoint, ledger and rejected records move. The list is fenced first:
 * a worker that was frozen in the earlier walk would otherwise wake up without its ledger, and take every row for gone.
 */
async function takeOverCheckpoint(tx: Transaction, from: string, to: string): Promise<void> {
  const moved = await tx.$executeRaw`
    UPDATE muster.lists l SET epoch = l.epoch + 1 FROM muster.walks w
    WHERE w.id = ${from}::uuid AND w.checkpoint IS NOT NULL
      AND l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource`;
  if (moved === 0) return;
  await tx.$executeRaw`
    UPDATE muster.walks w SET checkpoint = e.checkpoint, checkpoint_at = e.checkpoint_at, fingerprint = e.fingerprint, pass = e.pass,
      pass_started_at = e.pass_started_at, received = e.received, duplicates = e.duplicates, rejected = e.rejected, total_records = e.total_records
    FROM muster.walks e WHERE w.id = ${to}::uuid AND e.id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL WHERE id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.walk_pages SET walk_id = ${to}::uuid WHERE walk_id = ${from}::uuid`;
  await tx.$executeRaw`UPDATE muster.rejected_records SET walk_id = ${to}::uuid WHERE walk_id = ${from}::uuid`;
}

async function setNextSyncs(
  tx: Transaction,
  companies: readonly CompanyKey[],
  nextSyncOf: (company: CompanyKey) => Date,
): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.connections c SET next_sync_at = asked.at
    FROM unnest(${companies.map(({ environment }) => environment)}::text[], ${companies.map(({ companyId }) => companyId)}::uuid[],
      ${companies.map(nextSyncOf)}::timestamptz[]) AS asked(environment, company_id, at)
    WHERE c.environment = asked.environment AND c.company_id = asked.company_id`;
}

/** Rows of a FROM: environment and company_id of each. */
function rowsOf(companies: readonly CompanyKey[]): Prisma.Sql {
  const environments = companies.map(({ environment }) => environment);
  const ids = companies.map(({ companyId }) => companyId);
  return Prisma.sql`unnest(${environments}::text[], ${ids}::uuid[]) AS asked(environment, company_id)`;
}

function refusalOf(connection: Connection): MusterError {
  const name = describeCompany(connection);
  return connection.status === 'paused'
    ? new MusterError('company_paused', `The ${name} is paused: resume it first (POST …/resume).`)
    : new MusterError(
        'reauthorization_required',
        `The ${name} must authorize again before it can be synced: send it a connect link.`,
      );
}
