import { type Catalogue, nightlyLists, withParents } from '../catalogue/endpoint.js';
import { type CompanyKey, describeCompany, keyText } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { QuietHours } from '../core/quiet-hours.js';
import type { Transaction } from '../db/connection/transaction.js';
import { type LockedConnection, lockConnections, type OwnQuietHours, setNextSyncs } from '../db/tables/connections.js';
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
import { type ListTime, takeDueLists } from '../db/tables/scheduled-lists.js';
import { lockQuietRuns, placeWalks } from '../db/tables/walk-additions.js';
import { insertWalks, takeOverCheckpoint, walksOfRuns } from '../db/tables/walks.js';
import { CHECKPOINT_MAX_AGE_MS } from '../walks/walk-checkpoint.js';
import { among, awaits, isActive, isReplacedBy, without } from './awaited-runs.js';
import { planWalks } from './plan.js';
import { nextSyncsAfter, type Schedule } from './schedule.js';

/** The requested run, the same for every company. */
export interface RunOptions {
  readonly trigger: SyncTrigger;
  /** Default: `resume`. */
  readonly mode?: RunMode;
  /** Default: all lists of the catalogue. */
  readonly resources?: readonly string[];
  /** Restricts the request to due companies, and gives their next sync. Default: the next sync is set only if it never was. */
  readonly nextSyncOf?: (company: CompanyKey) => Date;
  /** Restricts the request to companies with a pending run request, which it takes; the request says which lists. */
  readonly onlyRequested?: boolean;
  /** Restricts the request to the lists among these that are due by their own schedules, and gives the next time of each. */
  readonly listTimesOf?: (company: CompanyKey) => readonly ListTime[];
}

/** Triggers by a person, who may have fixed the cause for which refreshes were put off. */
const ASKED_FOR: ReadonlySet<SyncTrigger> = new Set(['manual', 'resync']);

interface RequestDependencies {
  readonly catalogue: Catalogue;
  readonly schedule: Schedule;
  readonly quiet: QuietHours;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The outcome of a request by company (keyText). */
export type RequestOutcomes = ReadonlyMap<string, ClaimableRun | MusterError>;

/**
 * Returns the queued or running run of each company, or a new one. A run that waits to retry starts now, and in quiet hours at their end,
 * as a new one does; one that waits for their end gets the lists that it lacks. If the schedule asks, such a run ends, since it would walk only its unfinished lists: a new run walks these and every
 * list of the night. For a company that cannot be synced, it returns the error: company_paused, reauthorization_required. A company that is
 * gone, not due, not requested or awaited (`awaits`) has no outcome. With `skipLocked`, a company whose connection another transaction has
 * locked has none either, so that a request for many companies never waits.
 *
 * Many companies take the same few statements as one, with the same texts, since PostgreSQL plans each new text. The connections stay
 * locked until the transaction ends, so that one request at a time decides whether to add a run.
 */
export async function requestRuns(
  tx: Transaction,
  companies: readonly CompanyKey[],
  options: RunOptions,
  deps: RequestDependencies,
  { skipLocked = false } = {},
): Promise<RequestOutcomes> {
  const all = await lockConnections(tx, { companies, onlyDue: options.nextSyncOf !== undefined, skipLocked });
  const lastRuns = await lastRunsOf(tx, { companies: all.filter(({ status }) => status === 'active'), kind: 'sync' });
  const locked = without(
    all,
    lastRuns.filter((run) => awaits(options, run) && !isReplacedBy(options, run)),
  );
  const requested = options.onlyRequested ? await takeRequested(tx, companies, locked) : undefined;
  const resourcesOf = (company: CompanyKey) => (requested ? requested.get(keyText(company)) : options.resources) ?? undefined;
  const { catalogue } = deps;
  // All lists of a waiting request may have left the catalogue: a run without walks would succeed, and prove nothing.
  const isWalkable = (company: CompanyKey) => resourcesOf(company)?.some((resource) => catalogue.get(resource)) ?? true;
  const connections = requested ? locked.filter((each) => requested.has(keyText(each)) && isWalkable(each)) : locked;
  const answers = new Map<string, ClaimableRun | MusterError>(
    connections.filter(({ status }) => status !== 'active').map((each) => [keyText(each), refusalOf(each)]),
  );
  const runs = among(lastRuns, connections);
  const replaced = await failWaitingRuns(tx, { ids: runs.filter((run) => isReplacedBy(options, run)).map(({ id }) => id) });
  const active = runs.filter((run) => isActive(run) && !replaced.includes(run.id));
  // A run that was to be replaced may have started again.
  const syncable = without(
    connections.filter(({ status }) => status === 'active'),
    active.filter((run) => awaits(options, run)),
  );
  const answering = among(active, syncable);
  const connectionOf = new Map(syncable.map((connection) => [keyText(connection), connection]));
  await startRunsNow(
    tx,
    answering.map((run) => ({ id: run.id, quietUntil: quietUntil(connectionOf.get(keyText(run))!, deps) })),
  );
  await addLists(tx, answering, { ...options, resourcesOf }, catalogue);
  if (ASKED_FOR.has(options.trigger) && syncable.length > 0) await hastenRefreshes(tx, { companies: syncable });
  for (const run of answering) answers.set(keyText(run), run);
  const idle = syncable.filter((company) => !answers.has(keyText(company)));
  const isReplaced = ({ id }: LastRun) => replaced.includes(id);
  const unfinished = runs.filter((run) => isReplaced(run) || (options.mode !== 'full' && mayGoOnFrom(run, syncable, deps)));
  const replacing = new Set(runs.filter(isReplaced).map(keyText));
  const due = options.listTimesOf && (await takeDue(tx, idle.flatMap(options.listTimesOf), catalogue));
  const walked = due ? idle.filter((company) => due.has(keyText(company))) : idle;
  const planned = { ...options, resourcesOf: due ? (company: CompanyKey) => due.get(keyText(company)) : resourcesOf };
  for (const run of await createRuns(tx, walked, { unfinished, replacing }, planned, deps)) answers.set(keyText(run), run);
  await planNights(tx, options.nextSyncOf ? syncable : idle.filter(({ nextSyncAt }) => nextSyncAt === null), options, deps);
  return answers;
}

/**
 * Gives the runs among these that wait for the end of quiet hours the requested lists that they lack: such a run may wait for one list only, and a night
 * that it stands for would go without the others.
 */
async function addLists(
  tx: Transaction,
  runs: readonly LastRun[],
  {
    trigger,
    mode = 'resume',
    resourcesOf,
  }: Pick<RunOptions, 'trigger' | 'mode'> & { resourcesOf(company: CompanyKey): readonly string[] | undefined },
  { endpoints }: Catalogue,
): Promise<void> {
  if (runs.length === 0) return;
  const waiting = await lockQuietRuns(tx, { ids: runs.map(({ id }) => id) });
  const walks = await walksOfRuns(tx, { runIds: waiting.map(({ id }) => id) });
  const order = endpoints.map(({ resource }) => resource);
  const placed = waiting.flatMap(({ id: runId, environment, companyId }) => {
    const has = new Map(
      walks
        .filter((walk) => walk.companyId === companyId && walk.environment === environment)
        .map((walk) => [walk.resource, walk.id]),
    );
    const wanted = resourcesOf({ environment, companyId }) ?? order;
    const all = order.filter((resource) => has.has(resource) || wanted.includes(resource));
    if (all.every((resource) => has.has(resource))) return [];
    // The entry of a list may have left the catalogue.
    const resources = [...all, ...[...has.keys()].filter((resource) => !all.includes(resource))];
    return resources.map((resource, position) => ({ environment, companyId, runId, resource, position, id: has.get(resource) }));
  });
  if (placed.length > 0) await placeWalks(tx, placed, { trigger, mode });
}

/** Sets the next nightly sync. Where every list has a schedule of its own, there is none. */
async function planNights(
  tx: Transaction,
  companies: readonly CompanyKey[],
  options: RunOptions,
  { catalogue, schedule, now }: RequestDependencies,
): Promise<void> {
  if (nightlyLists(catalogue).length === 0) return;
  const nextSyncOf = options.nextSyncOf ?? nextSyncsAfter(schedule, now);
  await setNextSyncs(tx, { syncs: companies.map((company) => ({ ...company, at: nextSyncOf(company) })) });
}

/** Gives the due lists their next times. Returns the lists to walk by company (keyText): those that were due, with their parents. */
async function takeDue(
  tx: Transaction,
  times: readonly ListTime[],
  catalogue: Catalogue,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const taken = times.length === 0 ? [] : await takeDueLists(tx, times);
  const resources = new Map<string, string[]>();
  for (const list of taken) resources.set(keyText(list), [...(resources.get(keyText(list)) ?? []), list.resource]);
  return new Map([...resources].map(([company, due]) => [company, withParents(catalogue, due)]));
}

/**
 * Takes the requests that are still pending, since another worker may have made the run before this one got the lock. This must be a
 * statement after the lock, so that it sees everything committed until then. Returns the requested lists by company (keyText); null: every list.
 */
async function takeRequested(
  tx: Transaction,
  companies: readonly CompanyKey[],
  locked: readonly LockedConnection[],
): Promise<ReadonlyMap<string, readonly string[] | null>> {
  const isLocked = new Set(locked.map(keyText));
  const unlocked = companies.filter((company) => !isLocked.has(keyText(company)));
  const taken = await takeRunRequests(tx, { companies, unlocked });
  return new Map(taken.map((request) => [keyText(request), request.resources]));
}

async function createRuns(
  tx: Transaction,
  companies: readonly LockedConnection[],
  /** Ended runs whose walks may be continued, and the companies (keyText) whose waiting runs are replaced. */
  { unfinished, replacing }: { readonly unfinished: readonly LastRun[]; readonly replacing: ReadonlySet<string> },
  {
    trigger,
    mode = 'resume',
    resourcesOf,
  }: RunOptions & { readonly resourcesOf: (company: CompanyKey) => readonly string[] | undefined },
  deps: RequestDependencies,
): Promise<(CompanyKey & RunClaim)[]> {
  if (companies.length === 0) return [];
  const { catalogue } = deps;
  const lastWalks = await walksOfRuns(tx, { runIds: unfinished.map(({ id }) => id) });
  const starting = companies.map((company) => ({ ...company, quietUntil: quietUntil(company, deps) }));
  const runs = await insertRuns(tx, { companies: starting, trigger, mode });
  const planned = runs.flatMap(({ id: runId, environment, companyId }) => {
    const earlier = lastWalks.filter((walk) => keyText(walk) === keyText({ environment, companyId }));
    const left = replacing.has(keyText({ environment, companyId })) ? earlier.filter(({ succeeded }) => !succeeded) : [];
    const asked = resourcesOf({ environment, companyId });
    // A list that the replaced run could not walk may have its next time in a week.
    const resources = asked && [...asked, ...left.map(({ resource }) => resource)];
    const walks = planWalks({ catalogue, mode, lastWalks: earlier, ...(resources && { resources }) });
    // A run that replaces a waiting one takes over its checkpoints.
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
 * Returns the company's queued or running verification read, or a new one of these resources, which begins once no sync is under way.
 * Undefined for a company that is gone; the error for a company that cannot be read.
 */
export async function requestVerification(
  tx: Transaction,
  company: CompanyKey,
  { trigger, resources }: { readonly trigger: VerifyTrigger; readonly resources?: readonly string[] },
  deps: Pick<RequestDependencies, 'catalogue' | 'quiet' | 'now'>,
): Promise<(ClaimableRun & CompanyKey) | MusterError | undefined> {
  const [connection] = await lockConnections(tx, { companies: [company], onlyDue: false, skipLocked: false });
  if (!connection || connection.status !== 'active') return connection && refusalOf(connection);
  const [last] = await lastRunsOf(tx, { companies: [company], kind: 'verify' });
  if (last?.status === 'queued' || last?.status === 'running') {
    await startRunsNow(tx, [{ id: last.id, quietUntil: quietUntil(connection, deps) }]);
    return last;
  }
  const { catalogue } = deps;
  const starting = [{ ...company, quietUntil: quietUntil(connection, deps) }];
  const [run] = await insertRuns(tx, { companies: starting, trigger, mode: 'full' });
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

/** The end of the quiet hours in which the company is now; null if it is in none. */
function quietUntil({ quietHours }: OwnQuietHours, { quiet, now }: Pick<RequestDependencies, 'quiet' | 'now'>): Date | null {
  const end = quiet.endOf(quietHours, now);
  return end === undefined ? null : new Date(end);
}

/** The lists of the company without the unavailable ones, which have no mirror to compare with. */
async function availableLists(tx: Transaction, company: CompanyKey, { endpoints }: Catalogue): Promise<string[]> {
  const unavailable = await findUnavailable(tx, company);
  return endpoints.map(({ resource }) => resource).filter((resource) => !unavailable.includes(resource));
}

/** Whether the walks of a company's last run may be continued. A run that succeeded has none to continue. */
function mayGoOnFrom(
  run: LastRun,
  companies: readonly LockedConnection[],
  { quiet, now }: Pick<RequestDependencies, 'quiet' | 'now'>,
): boolean {
  const company = companies.find((each) => keyText(each) === keyText(run));
  // Checkpoints from before the company was removed are gone.
  if (run.status === 'succeeded' || company === undefined || run.createdAt < company.createdAt) return false;
  return run.finishedAt !== null && run.finishedAt.getTime() >= quiet.countBack(company.quietHours, now, CHECKPOINT_MAX_AGE_MS);
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
