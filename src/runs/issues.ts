import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { withRests } from '../core/rests.js';
import type { Database } from '../db/database.js';
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
  /** Hours after its last proof from which on a list is late. */
  readonly staleAfterHours: number;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly logger: Logger;
}

/** At the beginning of a night few runs are under way: at their pace alone it would never end. */
const YOUNG_NIGHT_MS = 30 * 60_000;
/** Each call looks for what a person should see, and keeps the issues accordingly. */
export function issueSweep({
  db,
  catalogue,
  exports,
  schedule,
  staleAfterHours,
  clock,
  logger,
}: IssueDependencies): () => Promise<void> {
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const exported = exportedResources(exports, catalogue);
  const lock = new SweepLock('issues', clock, logger);
  return withRests(clock, async () => {
    const now = clock.now();
    const { began, next } = nightsAround(schedule, now);
    const news = await reconcileIssues(db, lock, {
      resources,
      exported,
      staleAfterHours,
      secondsLeft: (next - now) / 1_000,
      isNightYoung: now - began < YOUNG_NIGHT_MS,
    });
    for (const { id, cause, environment, resource, companies, status } of news)
      logger.info({ issue_id: id, cause, environment, ...(resource && { resource }), companies, status }, 'issue');
  });
}
