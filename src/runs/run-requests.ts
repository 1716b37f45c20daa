import type { Catalogue } from '../catalogue/endpoint.js';
import { type CompanyKey, describeCompany, keyText } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Transaction } from '../db/connection/transaction.js';
import { type LockedConnection, lockConnections, setNextSyncs } from '../db/tables/connections.js';
import { findUnavailable } from '../db/tables/lists.js';
import { hastenRefreshes } from '../db/tables/put-off-tokens.js';
import { takeRunRequests } from '../db/tables/run-requests.js';
import {
  type ClaimableRun,
  failWaitingRuns,
  insertRuns,
  type LastRun,
  lastRunsOf,
  type RunClaim,
  type RunMode,
  type SyncTrigger,
  startRunsNow,
  type VerifyTrigger,
} from '../db/tables/runs.js';
import { insertWalks, takeOverCheckpoint, walksOfRuns } from '../db/tables/walks.js';
import { CHECKPOINT_MAX_AGE_MS } from '../walks/walk-checkpoint.js';
import { planWalks } from './plan.js';
import { nextSyncsAfter, type Schedule } from './schedule.js';

/** The run that is asked for, of every company alike. */
export interface RunOptions {
  readonly trigger: SyncTrigger;
  /** `resume` unless said. */
  readonly mode?: RunMode;
  /** All of the catalogue unless said. */
  readonly resources?: readonly string[];
  /** Only companies that are due, and when they are again. Unless said, that is set only where it never was. */
  readonly nextSyncOf?: (company: CompanyKey) => Date;
  /** Only companies for which a request for many waits, which is thereby done. */
  readonly onlyRequested?: boolean;
}

/** Triggers of a person, who may have mended what refreshes were put off for. */
const ASKED_FOR: ReadonlySet<SyncTrigger> = new Set(['manual', 'resync']);

interface RequestDependencies {
  readonly catalogue: Catalogue;
  readonly schedule: Schedule;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What became of a request, by company (keyText). */
export type RequestAnswers = ReadonlyMap<string, ClaimableRun | MusterError>;

/**
 * The queued or running run of each company, or a new one; one that waits to retry starts now, and where the schedule asks it ends, since it would walk
 * only what it has left: a new one walks every list. For a company that cannot be synced, the
 * error that says why: company_paused, reauthorization_required. A company that is gone, not due or not requested has no answer, and with
 * `skipLocked` neither has one whose connection somebody else has locked just now: who asks for many waits for nobody.
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
  const locked = await lockConnections(tx, { companies, onlyDue: options.nextSyncOf !== undefined, skipLocked });
  const connections = options.onlyRequested ? await takeRequested(tx, companies, locked) : locked;
  const syncable = connections.filter(({ status }) => status === 'active');
  const answers = new Map<string, ClaimableRun | MusterError>(
    connections.filter(({ status }) => status !== 'active').map((each) => [keyText(each), refusalOf(each)]),
  );
  const lastRuns = await lastRunsOf(tx, { companies: syncable, kind: 'sync' });
  const isReplaced = ({ isWaiting }: LastRun) => options.trigger === 'nightly' && isWaiting;
  const replaced = await failWaitingRuns(tx, { ids: lastRuns.filter(isReplaced).map(({ id }) => id) });
  const active = lastRuns.filter(({ id, status }) => (status === 'queued' || status === 'running') && !replaced.includes(id));
  await startRunsNow(tx, { ids: active.map(({ id }) => id) });
  if (ASKED_FOR.has(options.trigger) && syncable.length > 0) await hastenRefreshes(tx, { companies: syncable });
  for (const run of active) answers.set(keyText(run), run);
  const idle = syncable.filter((company) => !answers.has(keyText(company)));
  const unfinished = lastRuns.filter(
    (run) => replaced.includes(run.id) || (options.mode !== 'full' && mayGoOnFrom(run, syncable, deps.now)),
  );
  for (const run of await createRuns(tx, idle, unfinished, options, deps)) answers.set(keyText(run), run);
  const moved = options.nextSyncOf ? syncable : idle.filter(({ nextSyncAt }) => nextSyncAt === null);
  const nextSyncOf = options.nextSyncOf ?? nextSyncsAfter(deps.schedule, deps.now);
  await setNextSyncs(tx, { syncs: moved.map((company) => ({ ...company, at: nextSyncOf(company) })) });
  return answers;
}

/**
 * The connections whose requests wait still: another worker may have made the run before the lock was ours. By a statement behind the lock,
 * which sees what was committed until then.
 */
async function takeRequested(
  tx: Transaction,
  companies: readonly CompanyKey[],
  locked: readonly LockedConnection[],
): Promise<LockedConnection[]> {
  const isLocked = new Set(locked.map(keyText));
  const unlocked = companies.filter((company) => !isLocked.has(keyText(company)));
  const taken = new Set((await takeRunRequests(tx, { companies, unlocked })).map(keyText));
  return locked.filter((connection) => taken.has(keyText(connection)));
}

async function createRuns(
  tx: Transaction,
  companies: readonly LockedConnection[],
  /** Runs that ended, with walks that may be gone on from. */
  unfinished: readonly LastRun[],
  { trigger, mode = 'resume', resources }: RunOptions,
  { catalogue }: RequestDependencies,
): Promise<(CompanyKey & RunClaim)[]> {
  if (companies.length === 0) return [];
  const lastWalks = await walksOfRuns(tx, { runIds: unfinished.map(({ id }) => id) });
  const runs = await insertRuns(tx, { companies, trigger, mode });
  const planned = runs.flatMap(({ id: runId, environment, companyId }) => {
    const earlier = lastWalks.filter((walk) => keyText(walk) === keyText({ environment, companyId }));
    const walks = planWalks({ catalogue, mode, lastWalks: earlier, ...(resources && { resources }) });
    // A run in whose place this one walks every list leaves its checkpoints to it.
    const continues = (resource: string) => earlier.find((walk) => walk.resource === resource && !walk.succeeded)?.id;
    return walks.map(({ resource }, position) => ({
      resource,
      continues: continues(resource),
      runId,
      environment,
      companyId,
      position,
    }));
  });
  const walks = await insertWalks(tx, { walks: planned, kind: 'sync' });
  for (const { runId, position, continues } of planned) {
    const walk = walks.find((each) => each.runId === runId && each.position === position);
    if (continues) await takeOverCheckpoint(tx, { from: continues, to: walk!.id });
  }
  return runs;
}

/**
 * The company's queued or running second reading, or a new one of these resources: at once or, where the company is being synced, behind
 * that. Undefined for a company that is gone; the error that says why where it cannot be asked for.
 */
export async function requestVerification(
  tx: Transaction,
  company: CompanyKey,
  { trigger, resources }: { readonly trigger: VerifyTrigger; readonly resources?: readonly string[] },
  { catalogue }: Pick<RequestDependencies, 'catalogue'>,
): Promise<(ClaimableRun & CompanyKey) | MusterError | undefined> {
  const [connection] = await lockConnections(tx, { companies: [company], onlyDue: false, skipLocked: false });
  if (!connection || connection.status !== 'active') return connection && refusalOf(connection);
  const [last] = await lastRunsOf(tx, { companies: [company], kind: 'verify' });
  if (last?.status === 'queued' || last?.status === 'running') {
    await startRunsNow(tx, { ids: [last.id] });
    return last;
  }
  const [run] = await insertRuns(tx, { companies: [company], trigger, mode: 'full' });
  const walks = planWalks({
    catalogue,
    mode: 'full',
    lastWalks: [],
    resources: resources ?? (await availableLists(tx, company, catalogue)),
  });
  const planned = walks.map(({ resource }, position) => ({ ...company, runId: run!.id, resource, position }));
  await insertWalks(tx, { walks: planned, kind: 'verify' });
  return run;
}

/** The lists that the company has, as far as is known: there is nothing to hold a list against that is not there. */
async function availableLists(tx: Transaction, company: CompanyKey, { endpoints }: Catalogue): Promise<string[]> {
  const unavailable = await findUnavailable(tx, company);
  return endpoints.map(({ resource }) => resource).filter((resource) => !unavailable.includes(resource));
}

/** Whether the walks of a company's last run may be gone on from: of a run that succeeded, nothing is left to do. */
function mayGoOnFrom(run: LastRun, companies: readonly LockedConnection[], now: number): boolean {
  const since = companies.find((company) => keyText(company) === keyText(run))?.createdAt;
  // What was before a company was removed is gone.
  if (run.status === 'succeeded' || since === undefined || run.createdAt < since) return false;
  return run.finishedAt !== null && run.finishedAt.getTime() >= now - CHECKPOINT_MAX_AGE_MS;
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
