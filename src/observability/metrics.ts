import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Clock } from '../core/clock.js';
import type { Environment } from '../core/company.js';
import type { StaleAfterHours } from '../core/stale-after.js';
import { VERSION } from '../core/version.js';
import type { Database } from '../db/connection/database.js';
import { measureDatabase } from '../db/connection/server-state.js';
import type { Transaction } from '../db/connection/transaction.js';
import { readByIndex } from '../db/statements/by-index.js';
import { countCompanies } from '../db/tables/connections.js';
import { measureOldestHold } from '../db/tables/holds.js';
import { countIssuesByCause } from '../db/tables/issues.js';
import { LACKING_STATES, type NightAsked, readIsUnderWay, readLastNight } from '../db/tables/last-night.js';
import { countListStatesByStatus, countProofs } from '../db/tables/list-counts.js';
import { LIST_PROOFS, LIST_STATES } from '../db/tables/list-states.js';
import { countUndelivered } from '../db/tables/notifications.js';
import { countLateTokens } from '../db/tables/put-off-tokens.js';
import { type BudgetUse, readBudgetUse } from '../db/tables/request-budgets.js';
import { countActiveRuns, countLastRuns, measureWait } from '../db/tables/run-counts.js';
import { ageSweeps } from '../db/tables/sweeps.js';
import { estimateNight } from '../db/tables/walks.js';
import { countWorkers, longestDelay } from '../db/tables/workers.js';
import { ScrapeReadings } from './scrape-readings.js';
import { addStoredMetrics } from './stored-metrics.js';

export interface MetricsDependencies {
  /** The numbers of workers come from the database: a worker serves no metrics. */
  readonly db: Database;
  readonly clock: Pick<Clock, 'sleep'>;
  /** The lists of the catalogue. A list that has left it is not walked any more, so the age of its proof would only grow. */
  readonly resources: readonly string[];
  readonly staleAfterHours: StaleAfterHours;
  /** The environments that are configured. */
  readonly environments: readonly Environment[];
  /** Jobs that wait for a worker, by queue. */
  waitingJobs(): Promise<Readonly<Record<string, number>>>;
  /** Whether each part of the installation is there, by its name (GET /readyz). */
  readyParts(): Promise<Readonly<Record<string, boolean>>>;
  /** When the newest night began, how many seconds ago that was, and when the next one begins. */
  night(): Pick<NightAsked, 'beganAt' | 'lastTurnAt' | 'nextAt'> & { readonly seconds: number };
}

/** A number with its labels; null if there is none. */
type Measured = Readonly<Record<string, unknown>> & { readonly count: number | null };

/**
 * The registry of GET /metrics, read again at every scrape. Each metric is one cheap query: its cost grows with the companies at
 * most, never with the history. A metric that cannot be read, or not in time, is left out: no number is better than a wrong one. docs/metrics.md lists them.
 */
export function createMetrics(deps: MetricsDependencies): Registry {
  const { db, clock, resources, staleAfterHours, environments, waitingJobs, readyParts, night } = deps;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });

  const readings = new ScrapeReadings(clock);
  // Metrics are read one after the other: reading all at once would take every connection from the pool.
  const inTurn = <T>(read: () => Promise<T>) => readings.inTurn(read);
  const add = (name: string, help: string, labelNames: string[], read: () => Promise<readonly Measured[]>) =>
    addGauge(name, help, labelNames, () => inTurn(read));
  /** For what needs not wait for the database. */
  const addBeside = (name: string, help: string, labelNames: string[], read: () => Promise<readonly Measured[]>) =>
    addGauge(name, help, labelNames, () => readings.now(read));
  function addGauge(name: string, help: string, labelNames: string[], read: () => Promise<readonly Measured[]>): void {
    async function set(gauge: Gauge): Promise<void> {
      gauge.reset();
      if (labelNames.length === 0) gauge.remove(); // without this it would be 0
      for (const { count, ...labels } of await read()) if (count !== null) gauge.set(labels as Record<string, string>, count);
    }
    function collect(this: Gauge): Promise<void> {
      return set(this).catch(() => {});
    }
    registry.registerMetric(new Gauge({ name, help, labelNames, registers: [], collect }));
  }

  const value = (name: string, help: string, read: () => Promise<number | null>) =>
    add(name, help, [], async () => [{ count: await read() }]);
  const byEnvironment = (name: string, help: string, read: (use: BudgetUse) => number | null) =>
    add(name, help, ['environment'], async () =>
      (await readBudgetUse(db)).map((use) => ({ environment: use.environment, count: read(use) })),
    );
  /** Counts all companies or lists by an index, however small their table was when the statement was planned. */
  const counted = <T>(read: (tx: Transaction) => Promise<T>) => readByIndex(db, read);
  const lists = { resources, staleAfterHours };
  const lateTokens = () => counted((tx) => countLateTokens(tx, { environments }));
  const proofs = () => counted((tx) => countProofs(tx, lists));
  async function nightOf(environment: Environment): Promise<Measured[]> {
    const { proved, lacking } = await readLastNight(db, { ...lists, ...night(), environment });
    const counts = new Map(lacking.map((each) => [each.state, each.lists]));
    return [
      { environment, state: 'proved', count: proved },
      ...LACKING_STATES.map((state) => ({ environment, state, count: counts.get(state) ?? 0 })),
    ];
  }

  add('muster_companies', 'Onboarded companies by status.', ['status'], () => counted(countCompanies));
  add(
    'muster_companies_last_run',
    'Active companies by the status of the last run that ended; runs by the schedules of lists count only where there are no nights.',
    ['status'],
    () => counted(countLastRuns),
  );
  add('muster_runs', 'Runs that have not ended, by status.', ['status'], () => countActiveRuns(db.prisma));
  value(
    'muster_run_longest_wait_seconds',
    'For how long the run that is first in line has been due, or 0.',
    async () => (await measureWait(db.prisma)) ?? 0,
  );
  value('muster_tokens_due', 'Access tokens that are to be refreshed now.', async () => (await lateTokens()).due);
  value(
    'muster_tokens_overdue',
    'Access tokens that expired before they were refreshed, without those that wait for the end of quiet hours.',
    async () => (await lateTokens()).overdue,
  );
  value(
    'muster_oldest_verified_seconds',
    "Age of the oldest proof among the catalogue's lists, without paused companies and unavailable lists.",
    async () => (await proofs()).oldestSeconds,
  );
  value('muster_lists_unverified', "The catalogue's lists that were never proved complete.", async () => (await proofs()).never);
  add('muster_lists', "The catalogue's lists of every company by their last proof.", ['proof'], async () => {
    const counts = await proofs();
    return LIST_PROOFS.map((proof) => ({ proof, count: counts[proof] }));
  });
  add(
    'muster_lists_by_state',
    "The catalogue's lists of every company by their state and by what Muster may do for the company, without environments that have no settings.",
    ['environment', 'resource', 'company', 'state'],
    async () =>
      (await counted((tx) => countListStatesByStatus(tx, lists)))
        .filter(({ environment }) => environments.includes(environment))
        .flatMap(({ environment, resource, status, states }) =>
          LIST_STATES.map((state) => ({ environment, resource, company: status, state, count: states[state] })),
        ),
  );
  add(
    'muster_night_lists',
    "The catalogue's lists that were due in the newest night: those proved since it began, and the others by their state.",
    ['environment', 'state'],
    async () => {
      const counts: Measured[] = [];
      for (const environment of environments) counts.push(...(await nightOf(environment)));
      return counts;
    },
  );
  add(
    'muster_night_under_way',
    'Whether runs of the newest night are under way or still to come: 1, or 0.',
    ['environment'],
    async () => {
      const counts: Measured[] = [];
      for (const environment of environments)
        counts.push({ environment, count: (await readIsUnderWay(db, { ...lists, ...night(), environment })) ? 1 : 0 });
      return counts;
    },
  );
  addBeside('muster_night_age_seconds', 'Time since the newest night began.', [], async () => [{ count: night().seconds }]);
  value('muster_holds_open', 'Held deletions that wait for a person.', () => db.prisma.hold.count({ where: { status: 'open' } }));
  value('muster_hold_oldest_seconds', 'Age of the oldest held deletion that waits for a person, or 0.', () =>
    counted(measureOldestHold),
  );
  add(
    'muster_issues',
    'Ongoing issues by cause, those that a person has snoozed as well.',
    ['severity', 'cause', 'environment'],
    () => countIssuesByCause(db.prisma),
  );
  add('muster_notifications', 'Notifications that were not delivered, by status.', ['status'], () => countUndelivered(db.prisma));
  byEnvironment('muster_request_limit', 'Requests a second that were found to be the limit.', ({ rate }) => rate);
  byEnvironment('muster_requests_last_minute', 'Requests that left in the last minute.', ({ used }) => used);
  byEnvironment(
    'muster_requests_refused_last_minute',
    'Requests of the last minute that were answered 429.',
    ({ refused }) => refused,
  );
  byEnvironment('muster_requests_waiting', 'Requests that wait for the request budget.', ({ waiting }) => waiting);
  add('muster_night_seconds_left', 'How long the runs that have not ended still take at their pace.', ['environment'], async () =>
    (await estimateNight(db.prisma)).map(({ environment, seconds }) => ({ environment, count: seconds })),
  );
  value(
    'muster_worker_event_loop_delay_seconds',
    'For how long the event loop of a worker was held up at most in the last minute.',
    () => longestDelay(db.prisma),
  );
  value('muster_workers', 'Workers that live: they have said so in the last 15 seconds.', () => countWorkers(db.prisma));
  add('muster_sweep_age_seconds', 'Time since each sweep last ended in any worker.', ['sweep'], () => ageSweeps(db));
  addBeside('muster_queue_waiting', 'Jobs that wait for a worker.', ['queue'], async () =>
    Object.entries(await waitingJobs()).map(([queue, count]) => ({ queue, count })),
  );
  addBeside('muster_ready', 'Whether a part of the installation is there: 1, or 0.', ['part'], async () =>
    Object.entries(await readyParts()).map(([part, isReady]) => ({ part, count: isReady ? 1 : 0 })),
  );
  value('muster_database_size_bytes', 'Size of the database on disk.', () => measureDatabase(db.prisma));
  addBeside(
    'muster_build_info',
    'The version of this API process and of its Node. The value is always 1.',
    ['version', 'node'],
    async () => [{ version: VERSION, node: process.versions.node, count: 1 }],
  );
  addStoredMetrics(registry, db, inTurn);
  return registry;
}

/** Counts calls of the admin API with a wrong token. */
export function countRefusedTokens(registry: Registry): Counter {
  const help = 'Calls of the admin API that bore a wrong token, since the process started.';
  return new Counter({ name: 'muster_refused_tokens_total', help, registers: [registry] });
}
