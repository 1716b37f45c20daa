import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Database } from '../db/database.js';
import { countCompanies } from '../db/tables/connections.js';
import { measureProofs } from '../db/tables/lists.js';
import { countUndelivered } from '../db/tables/notifications.js';
import { countActiveRuns, countLastRuns } from '../db/tables/runs.js';
import { countLateTokens } from '../db/tables/tokens.js';

interface MetricsDependencies {
  /** Workers have no port of their own to be asked at, so that their numbers come from the database. */
  readonly db: Database;
  /** The lists of the catalogue. One that has left it is walked no more: its proof would grow old for ever. */
  readonly resources: readonly string[];
  /** Jobs that wait for a worker, by queue. */
  waitingJobs(): Promise<Readonly<Record<string, number>>>;
}

type StatusCounts = readonly { readonly status: string; readonly count: number }[];

/**
 * The registry behind GET /metrics, read anew at every scrape. Each metric is one cheap query: its cost grows with the companies at
 * most, never with the history. What cannot be read is left out: no number is better than a wrong one. docs/metrics.md lists them.
 */
export function createMetrics({ db, resources, waitingJobs }: MetricsDependencies): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });

  function add(name: string, help: string, labelNames: string[], set: (gauge: Gauge) => Promise<void>): void {
    async function collect(this: Gauge): Promise<void> {
      this.reset();
      if (labelNames.length === 0) this.remove(); // or it would be 0
      await set(this).catch(() => {});
    }
    registry.registerMetric(new Gauge({ name, help, labelNames, registers: [], collect }));
  }

  function value(name: string, help: string, read: () => Promise<number | null>): void {
    add(name, help, [], async (gauge) => {
      const number = await read();
      if (number !== null) gauge.set(number);
    });
  }

  function byStatus(name: string, help: string, read: () => Promise<StatusCounts>): void {
    add(name, help, ['status'], async (gauge) => {
      for (const { status, count } of await read()) gauge.set({ status }, count);
    });
  }

  byStatus('muster_companies', 'Onboarded companies by status.', () => countCompanies(db));
  byStatus('muster_companies_last_run', 'Active companies by the status of the last run that ended.', () => countLastRuns(db));
  byStatus('muster_runs', 'Runs that have not ended, by status.', () => countActiveRuns(db));
  value('muster_tokens_due', 'Access tokens that are to be refreshed now.', async () => (await countLateTokens(db)).due);
  value(
    'muster_tokens_overdue',
    'Access tokens that expired before they were refreshed.',
    async () => (await countLateTokens(db)).overdue,
  );
  value(
    'muster_oldest_verified_seconds',
    "Age of the oldest proof among the catalogue's lists of active companies that were ever proved complete.",
    async () => (await measureProofs(db, { resources })).oldestSeconds,
  );
  value(
    'muster_lists_unverified',
    "The catalogue's lists of active companies that were never proved complete.",
    async () => (await measureProofs(db, { resources })).unverified,
  );
  value('muster_holds_open', 'Held deletions that wait for a person.', () => db.prisma.hold.count({ where: { status: 'open' } }));
  byStatus('muster_notifications', 'Notifications that were not delivered, by status.', () => countUndelivered(db));
  add('muster_queue_waiting', 'Jobs that wait for a worker.', ['queue'], async (gauge) => {
    for (const [queue, count] of Object.entries(await waitingJobs())) gauge.set({ queue }, count);
  });
  return registry;
}
