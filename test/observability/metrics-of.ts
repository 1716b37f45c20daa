import type { Registry } from 'prom-client';
import type { Database } from '../../src/db/connection/database.js';
import { createMetrics, type MetricsDependencies } from '../../src/observability/metrics.js';

export const hoursAgo = (count: number) => new Date(Date.now() - count * 3_600_000);

/** However slow the machine is, a scrape reads everything. */
const ENDLESS = { sleep: () => new Promise<never>(() => {}) };

/** The metrics of an installation whose newest night began three hours ago. */
export function metricsOf(
  db: Database,
  resources: readonly string[] = [],
  { clock = ENDLESS, environments = ['test'], waitingJobs = async () => ({ runs: 3 }) }: Partial<MetricsDependencies> = {},
): Registry {
  return createMetrics({
    db,
    clock,
    resources,
    staleAfterHours: 26,
    environments,
    waitingJobs,
    readyParts: async () => ({ database: true, queue: false }),
    night: () => ({ beganAt: hoursAgo(3), lastTurnAt: hoursAgo(1), nextAt: hoursAgo(-21), seconds: 10_800 }),
  });
}
