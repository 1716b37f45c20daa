import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** Where the numbers come from: the database, since workers have no port of their own to be asked at. */
interface Queryable {
  query(sql: string, values: unknown[]): Promise<{ rows: readonly Record<string, string | number | null>[] }>;
}

export interface MetricsSources {
  readonly db: Queryable;
  /** The lists of the catalogue. One that has left it is walked no more: its proof would grow old for ever. */
  readonly resources: readonly string[];
  /** Jobs that wait for a worker, by queue. */
  waitingJobs(): Promise<Readonly<Record<string, number>>>;
}

interface DatabaseGauge {
  readonly name: string;
  readonly help: string;
  readonly label?: string;
  /** Gives `value`, and the label's column where there is one. No row, or null: nothing to measure. */
  readonly sql: string;
  /** The names of the catalogue's lists are `$1`. */
  readonly ofCatalogue?: true;
}

/** Each is one cheap query: its cost grows with the companies at most, never with the history. docs/metrics.md lists them. */
const DATABASE_GAUGES: readonly DatabaseGauge[] = [
  {
    name: 'muster_companies',
    help: 'Onboarded companies by status.',
    label: 'status',
    sql: 'SELECT status, count(*)::int AS value FROM muster.connections GROUP BY status',
  },
  {
    name: 'muster_companies_last_run',
    help: 'Active companies by the status of the last run that ended.',
    label: 'status',
    sql: `SELECT r.status, count(*)::int AS value FROM muster.connections c CROSS JOIN LATERAL (
            SELECT status FROM muster.runs r
            WHERE r.environment = c.environment AND r.company_id = c.company_id AND r.finished_at IS NOT NULL
            ORDER BY seq DESC LIMIT 1) r
          WHERE c.status = 'active' GROUP BY r.status`,
  },
  {
    name: 'muster_runs',
    help: 'Runs that have not ended, by status.',
    label: 'status',
    sql: `SELECT s.status, count(r.id)::int AS value FROM (VALUES ('queued'), ('running')) AS s(status)
          LEFT JOIN muster.runs r ON r.status = s.status AND r.status IN ('queued', 'running') GROUP BY s.status`,
  },
  {
    name: 'muster_tokens_due',
    help: 'Access tokens that are to be refreshed now.',
    sql: `SELECT count(*)::int AS value FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
          WHERE c.reauthorization_reason IS NULL AND t.refresh_at <= now()`,
  },
  {
    name: 'muster_tokens_overdue',
    help: 'Access tokens that expired before they were refreshed.',
    sql: `SELECT count(*)::int AS value FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
          WHERE c.reauthorization_reason IS NULL AND t.expires_at <= now()`,
  },
  {
    name: 'muster_oldest_verified_seconds',
    help: "Age of the oldest proof among the catalogue's lists of active companies that were ever proved complete.",
    ofCatalogue: true,
    sql: `SELECT extract(epoch FROM now() - min(l.last_verified_at))::float8 AS value
          FROM muster.lists l JOIN muster.connections c USING (environment, company_id)
          WHERE c.status = 'active' AND l.resource = ANY($1)`,
  },
  {
    name: 'muster_lists_unverified',
    help: "The catalogue's lists of active companies that were never proved complete.",
    ofCatalogue: true,
    sql: `SELECT count(*)::int AS value FROM muster.lists l JOIN muster.connections c USING (environment, company_id)
          WHERE c.status = 'active' AND l.resource = ANY($1) AND l.last_verified_at IS NULL`,
  },
  {
    name: 'muster_holds_open',
    help: 'Held deletions that wait for a person.',
    sql: `SELECT count(*)::int AS value FROM muster.holds WHERE status = 'open'`,
  },
  {
    name: 'muster_notifications',
    help: 'Notifications that were not delivered, by status.',
    label: 'status',
    sql: `SELECT s.status, count(n.id)::int AS value FROM (VALUES ('pending'), ('failed')) AS s(status)
          LEFT JOIN muster.notifications n ON n.status = s.status GROUP BY s.status`,
  },
];

/** The registry behind GET /metrics, read anew at every scrape. What cannot be read is left out: no number is better than a wrong one. */
export function createMetrics({ db, resources, waitingJobs }: MetricsSources): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const { name, help, label, sql, ofCatalogue } of DATABASE_GAUGES) {
    gauge(registry, name, help, label, async () => {
      const { rows } = await db.query(sql, ofCatalogue ? [resources] : []);
      return rows.map(({ value, ...row }) => [label === undefined ? undefined : String(row[label]), value] as const);
    });
  }
  gauge(registry, 'muster_queue_waiting', 'Jobs that wait for a worker.', 'queue', async () =>
    Object.entries(await waitingJobs()),
  );
  return registry;
}

type Sample = readonly [label: string | undefined, value: string | number | null | undefined];

function gauge(
  registry: Registry,
  name: string,
  help: string,
  label: string | undefined,
  read: () => Promise<readonly Sample[]>,
) {
  const registered = new Gauge({
    name,
    help,
    labelNames: label === undefined ? [] : [label],
    registers: [registry],
    async collect() {
      const samples = await read().catch(() => []);
      this.reset();
      if (label === undefined) this.remove();
      for (const [labelled, value] of samples) {
        if (value === null || value === undefined) continue;
        if (label === undefined || labelled === undefined) this.set(Number(value));
        else this.set({ [label]: labelled }, Number(value));
      }
    },
  });
  return registered;
}
