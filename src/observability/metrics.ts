import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Database } from '../db/database.js';
import { countCompanies } from '../db/tables/connections.js';
import { countOpenHolds } from '../db/tables/holds.js';
import { measureProofs } from '../db/tables/lists.js';
import { countUndelivered } from '../db/tables/notifications.js';
import { countActiveRuns, countLastRuns } from '../db/tables/runs.js';
import { countLateTokens } from '../db/tables/tokens.js';

export interface MetricsDependencies {
  /** Workers have no port of their own to be asked at, so that their numbers come from the database. */
  readonly db: Database;
  /** The lists of the catalogue. One that has left it is walked no more: its proof would grow old for ever. */
  readonly resources: readonly string[];
  /** Jobs that wait for a worker, by queue. */
  waitingJobs(): Promise<Readonly<Record<string, number>>>;
}

/** A value, or one for each value of a label. Null: nothing to measure. */
type Samples = number | null | readonly (readonly [label: string, value: number])[];

interface Measurement {
  readonly name: string;
  readonly help: string;
  readonly label?: string;
  read(deps: MetricsDependencies): Promise<Samples>;
}

/** Each is one cheap query: its cost grows with the companies at most, never with the history. docs/metrics.md lists them. */
const MEASUREMENTS: readonly Measurement[] = [
  {
    name: 'muster_companies',
    help: 'Onboarded companies by status.',
    label: 'status',
    read: async ({ db }) => byStatus(await countCompanies(db)),
  },
  {
    name: 'muster_companies_last_run',
    help: 'Active companies by the status of the last run that ended.',
    label: 'status',
    read: async ({ db }) => byStatus(await countLastRuns(db)),
  },
  {
    name: 'muster_runs',
    help: 'Runs that have not ended, by status.',
    label: 'status',
    read: async ({ db }) => byStatus(await countActiveRuns(db)),
  },
  {
    name: 'muster_tokens_due',
    help: 'Access tokens that are to be refreshed now.',
    read: async ({ db }) => (await countLateTokens(db)).due,
  },
  {
    name: 'muster_tokens_overdue',
    help: 'Access tokens that expired before they were refreshed.',
    read: async ({ db }) => (await countLateTokens(db)).overdue,
  },
  {
    name: 'muster_oldest_verified_seconds',
    help: "Age of the oldest proof among the catalogue's lists of active companies that were ever proved complete.",
    read: async ({ db, resources }) => (await measureProofs(db, { resources })).oldestSeconds,
  },
  {
    name: 'muster_lists_unverified',
    help: "The catalogue's lists of active companies that were never proved complete.",
    read: async ({ db, resources }) => (await measureProofs(db, { resources })).unverified,
  },
  { name: 'muster_holds_open', help: 'Held deletions that wait for a person.', read: ({ db }) => countOpenHolds(db) },
  {
    name: 'muster_notifications',
    help: 'Notifications that were not delivered, by status.',
    label: 'status',
    read: async ({ db }) => byStatus(await countUndelivered(db)),
  },
  {
    name: 'muster_queue_waiting',
    help: 'Jobs that wait for a worker.',
    label: 'queue',
    read: async ({ waitingJobs }) => Object.entries(await waitingJobs()),
  },
];

/** The registry behind GET /metrics, read anew at every scrape. What cannot be read is left out: no number is better than a wrong one. */
export function createMetrics(deps: MetricsDependencies): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const { name, help, label, read } of MEASUREMENTS) {
    const gauge = new Gauge({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [],
      async collect() {
        const samples = await read(deps).catch(() => null);
        this.reset();
        if (label === undefined) this.remove();
        if (typeof samples === 'number') this.set(samples);
        else for (const [of, value] of samples ?? []) this.set({ [label!]: of }, value);
      },
    });
    registry.registerMetric(gauge);
  }
  return registry;
}

function byStatus(counts: readonly { status: string; count: number }[]): Samples {
  return counts.map(({ status, count }) => [status, count] as const);
}
