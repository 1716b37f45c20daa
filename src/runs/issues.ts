import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { ENVIRONMENTS } from '../core/company.js';
import { limitDutyCycle } from '../core/duty-cycle.js';
import type { ByEnvironment } from '../core/provider-settings.js';
import type { Database } from '../db/connection/database.js';
import { reconcileIssues } from '../db/tables/issues.js';
import { SweepLock } from '../db/tables/sweep-lock.js';
import type { Logger } from '../observability/logger.js';
import { type ExportSettings, exportedResources } from '../warehouse/export/export-settings.js';
import { nightsAround, type Schedule } from './schedule.js';

interface IssueDependencies {
  readonly db: Database;
  readonly catalogue: Catalogue;
  /** Unset: nights are not exported. */
  readonly exports?: ExportSettings;
  readonly schedule: Schedule;
  /** A list is late once its last proof is older than this. */
  readonly staleAfterHours: number;
  /** The configured environments. */
  readonly providers: ByEnvironment<object>;
  /** This process works on the queue. */
  readonly isWorker: boolean;
  /** Undefined: no notifications are sent. */
  readonly webhook?: object | undefined;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly logger: Logger;
}

/** At the beginning of a night few runs are under way, so an estimate from their pace would be far too long. */
const YOUNG_NIGHT_MS = 30 * 60_000;
/** Each call opens, updates and resolves issues. */
export function issueSweep({
  db,
  catalogue,
  exports,
  schedule,
  staleAfterHours,
  providers,
  isWorker,
  webhook,
  clock,
  logger,
}: IssueDependencies): () => Promise<void> {
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const exported = exportedResources(exports, catalogue);
  const environments = ENVIRONMENTS.filter((environment) => providers[environment]);
  const lock = new SweepLock('issues', clock, logger);
  return limitDutyCycle(clock, async () => {
    const now = clock.now();
    const { began, next } = nightsAround(schedule, now);
    const news = await reconcileIssues(db, lock, {
      resources,
      exported,
      staleAfterHours,
      environments,
      isWorker,
      hasWebhook: webhook !== undefined,
      secondsLeft: (next - now) / 1_000,
      isNightYoung: now - began < YOUNG_NIGHT_MS,
    });
    for (const { id, cause, environment, resource, companies, status } of news)
      logger.info({ issue_id: id, cause, environment, ...(resource && { resource }), companies, status }, 'issue');
  });
}
