import type { Registry } from 'prom-client';
import type { Database } from '../../src/db/connection/database.js';
import { createMetrics } from '../../src/observability/metrics.js';

export const hoursAgo = (count: number) => new Date(Date.now() - count * 3_600_000);

/** The metrics of an installation whose newest night began three hours ago. */
export function metricsOf(db: Database, resources: readonly string[] = []): Registry {
  return createMetrics({
    db,
    resources,
    staleAfterHours: 26,
    environments: ['test'],
    waitingJobs: async () => ({ runs: 3 }),
    readyParts: async () => ({ database: true, queue: false }),
    night: () => ({ beganAt: hoursAgo(3), nextAt: hoursAgo(-21), seconds: 10_800 }),
  });
}
