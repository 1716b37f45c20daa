import type { Catalogue } from '../catalogue/endpoint.js';
import { type CompanyKey, describeCompany, keyText } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { type LockedConnection, lockConnections, setNextSyncs } from '../db/tables/connections.js';
import {
  insertRuns,
  type LastRun,
  lastRunsOf,
  type RunClaim,
  type RunMode,
  type RunTrigger,
  startRunsNow,
} from '../db/tables/runs.js';
import { type EarlierWalk, insertWalks, takeOverCheckpoint, walksOfRuns } from '../db/tables/walks.js';
import type { Transaction } from '../db/transaction.js';
import { CHECKPOINT_MAX_AGE_MS } from '../walks/walk-checkpoint.js';
import { planWalks } from './plan.js';
import { nextSyncsAfter, type Schedule } from './schedule.js';

/** The run that is asked for, of every company alike. */
export interface RunOptions {
  readonly trigger: RunTrigger;
  /** `resume` unless said. */
  readonly mode?: RunMode;
  /** All of the catalogue unless said. */
  readonly resources?: readonly string[];
  /** Only companies that are due, and when they are again. Unless said, that is set only where it never was. */
  readonly nextSyncOf?: (company: CompanyKey) => Date;
}

interface RequestDependencies {
  readonly catalogue: Catalogue;
  readonly schedule: Schedule;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What became of a request, by company (keyText). */
export type RequestAnswers = ReadonlyMap<string, RunClaim | MusterError>;

/**
 * The queued or running run of each company, or a new one; one that waits to retry starts now. For a company that cannot be synced, the
 * error that says why: company_paused, reauthorization_required. A company that is gone or not due has no answer, and with `skipLocked`
 * neither has one whose connection somebody else has locked just now: who asks for many waits for nobody.
 *
 * Many companies take the same few statements as one, by the same texts: each new text is planned anew. Their connections are locked
 * until the transaction ends, so that one request at a time decides whether a run is added.
 */
export async function requestRuns(
  tx: Transaction,
  companies: readonly CompanyKey[],
  options: RunOptions,
  deps: RequestDependencies,
  { skipLocked = false } = {},
): Promise<RequestAnswers> {
  const connections = await lockConnections(tx, { companies, onlyDue: options.nextSyncOf !== undefined, skipLocked });
  const syncable = connections.filter(({ status }) => status === 'active');
  const answers = new Map<string, RunClaim | MusterError>(
    connections.filter(({ status }) => status !== 'active').map((each) => [keyText(each), refusalOf(each)]),
  );
  const lastRuns = await lastRunsOf(tx, { companies: syncable });
  const active = lastRuns.filter(({ status }) => status === 'queued' || status === 'running');
  await startRunsNow(tx, { ids: active.map(({ id }) => id) });
  for (const run of active) answers.set(keyText(run), run);
  const idle = syncable.filter((company) => !answers.has(keyText(company)));
  for (const run of await createRuns(tx, idle, lastRuns, options, deps)) answers.set(keyText(run), run);
  const moved = options.nextSyncOf ? syncable : idle.filter(({ nextSyncAt }) => nextSyncAt === null);
  const nextSyncOf = options.nextSyncOf ?? nextSyncsAfter(deps.schedule, deps.now);
  await setNextSyncs(tx, { syncs: moved.map((company) => ({ ...company, at: nextSyncOf(company) })) });
  return answers;
}

async function createRuns(
  tx: Transaction,
  companies: readonly LockedConnection[],
  lastRuns: readonly LastRun[],
  { trigger, mode = 'resume', resources }: RunOptions,
  { catalogue, now }: RequestDependencies,
): Promise<(CompanyKey & RunClaim)[]> {
  if (companies.length === 0) return [];
  const lastWalks = mode === 'resume' ? await unfinishedWalks(tx, companies, lastRuns, now) : [];
  const runs = await insertRuns(tx, { companies, trigger, mode });
  const planned = runs.flatMap(({ id: runId, environment, companyId }) => {
    const earlier = lastWalks.filter((walk) => keyText(walk) === keyText({ environment, companyId }));
    const walks = planWalks({ catalogue, mode, lastWalks: earlier, ...(resources && { resources }) });
    return walks.map((walk, position) => ({ ...walk, runId, environment, companyId, position }));
  });
  const walks = await insertWalks(tx, { walks: planned });
  for (const { runId, position, continues } of planned) {
    const walk = walks.find((each) => each.runId === runId && each.position === position);
    if (continues) await takeOverCheckpoint(tx, { from: continues, to: walk!.id });
  }
  return runs;
}

/** The walks of the last runs that may be gone on from: of a run that succeeded, nothing is left to do. */
function unfinishedWalks(
  tx: Transaction,
  companies: readonly LockedConnection[],
  lastRuns: readonly LastRun[],
  now: number,
): Promise<EarlierWalk[]> {
  const connectedAt = new Map(companies.map((company) => [keyText(company), company.createdAt]));
  const resumable = lastRuns.filter((run) => {
    const since = connectedAt.get(keyText(run));
    // What was before a company was removed is gone.
    if (run.status === 'succeeded' || since === undefined || run.createdAt < since) return false;
    return run.finishedAt !== null && run.finishedAt.getTime() >= now - CHECKPOINT_MAX_AGE_MS;
  });
  return walksOfRuns(tx, { runIds: resumable.map(({ id }) => id) });
}

function refusalOf(connection: LockedConnection): MusterError {
  const name = describeCompany(connection);
  return connection.status === 'paused'
    ? new MusterError('company_paused', `The ${name} is paused: resume it first (POST …/resume).`)
    : new MusterError(
        'reauthorization_required',
        `The ${name} must authorize again before it can be synced: send it a connect link.`,
      );
}
