import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { describeCompany } from '../core/company.js';
import type { Database } from '../db/connection/database.js';
import { findListToRewrite, markOtherRules } from '../db/tables/list-privacy.js';
import type { Logger } from '../observability/logger.js';
import { redactStored, storedRules } from './redact-stored.js';

interface PrivacyDependencies {
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}

/** Lists that follow other rules are searched at this interval: a worker with an older catalogue may have taken them back. */
const LOOK_MS = 60_000;
/** A call starts no further list after this time. */
const PIECE_MS = 5_000;

/**
 * Each call rewrites lists whose rules have changed, of every company, including companies that cannot be walked. A sweep that is killed has rewritten a list or
 * not begun with it. A call does nothing while another is under way: it would find the same list, wait for its lock, and hold a connection as long.
 */
export function privacySweep({ db, catalogue, clock, logger }: PrivacyDependencies): () => Promise<void> {
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  let looksAgainAt = -Infinity;
  let isUnderWay = false;
  async function rewrite(): Promise<void> {
    const startedAt = clock.monotonic();
    if (startedAt >= looksAgainAt) {
      for (const { resource, privacy } of catalogue.endpoints) {
        const lists = await markOtherRules(db, { resource, rules: storedRules(privacy) });
        if (lists > 0) logger.info({ resource, lists }, 'privacy rules have changed: what is stored of these lists is rewritten');
      }
      looksAgainAt = startedAt + LOOK_MS;
    }
    while (clock.monotonic() - startedAt < PIECE_MS) {
      const list = await findListToRewrite(db, { resources });
      if (!list) return;
      const rows = await redactStored(db, list, catalogue.get(list.resource)?.privacy);
      logger.info({ resource: list.resource, rows }, `rewrote what is stored of ${describeCompany(list)}`);
    }
  }
  return async () => {
    if (isUnderWay) return;
    isUnderWay = true;
    await rewrite().finally(() => {
      isUnderWay = false;
    });
  };
}
