import type { Registry } from 'prom-client';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { Clock } from '../../core/clock.js';
import { ENVIRONMENTS } from '../../core/company.js';
import type { ByEnvironment, ProviderSettings } from '../../core/provider-settings.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import type { Database } from '../../db/connection/database.js';
import { createMetrics } from '../../observability/metrics.js';
import { nightsAround, type Schedule } from '../../runs/schedule.js';
import { type ReadinessCheck, readinessOf } from '../plumbing/readiness.js';

export interface InstallationMetricsDependencies {
  readonly db: Database;
  readonly clock: Clock;
  readonly catalogue: Catalogue;
  readonly staleAfterHours: StaleAfterHours;
  readonly schedule: Schedule;
  readonly providers: ByEnvironment<ProviderSettings>;
  readonly readiness: readonly ReadinessCheck[];
  readonly runQueue: { waiting(): Promise<number> };
}

/** The registry of GET /metrics, with what the other rooms know: the schedule, the parts that must be there, the queue. */
export function installationMetrics(deps: InstallationMetricsDependencies): Registry {
  const { db, clock, catalogue, staleAfterHours, schedule, providers, readiness, runQueue } = deps;
  return createMetrics({
    db,
    clock,
    resources: catalogue.endpoints.map(({ resource }) => resource),
    staleAfterHours,
    environments: ENVIRONMENTS.filter((environment) => providers[environment] !== undefined),
    waitingJobs: async () => ({ runs: await runQueue.waiting() }),
    night() {
      const now = clock.now();
      const { began, lastTurn, next } = nightsAround(schedule, now);
      return {
        beganAt: new Date(began),
        lastTurnAt: new Date(lastTurn),
        nextAt: new Date(next),
        seconds: (now - began) / 1_000,
      };
    },
    async readyParts() {
      const { parts } = await readinessOf(readiness);
      return Object.fromEntries(Object.entries(parts).map(([name, { ready }]) => [name, ready]));
    },
  });
}
