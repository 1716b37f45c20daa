import type { Clock } from '../core/clock.js';
import { limitDutyCycle } from '../core/duty-cycle.js';
import type { Database } from '../db/connection/database.js';
import { reconcileIssues } from '../db/tables/issues.js';
import { SweepLock } from '../db/tables/sweep-lock.js';
import type { Logger } from '../observability/logger.js';
import { type IssueSearchDependencies, issueSearchOf } from './issue-search.js';

interface IssueDependencies extends IssueSearchDependencies {
  readonly db: Database;
  /** This process works on the queue. */
  readonly isWorker: boolean;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly logger: Logger;
}

/** Each call opens, updates and resolves issues. */
export function issueSweep({ db, isWorker, logger, ...deps }: IssueDependencies): () => Promise<void> {
  const search = issueSearchOf(deps, isWorker);
  const lock = new SweepLock('issues', deps.clock, logger);
  return limitDutyCycle(deps.clock, async () => {
    const news = await reconcileIssues(db, lock, search());
    for (const { id, cause, environment, resource, companies, status } of news)
      logger.info({ issue_id: id, cause, environment, ...(resource && { resource }), companies, status }, 'issue');
  });
}
