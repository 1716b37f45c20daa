import type { Clock } from '../core/clock.js';
import type { Database } from '../db/connection/database.js';
import { countOpenHolds } from '../db/tables/holds.js';
import { countOngoingIssues } from '../db/tables/issues.js';

/** The menu shows how many issues and holds wait for a person: the numbers of the overview. */
export interface MenuCounts {
  readonly issues: number;
  readonly holds: number;
}

/** The numbers serve every page for so long. */
const FRESH_MS = 2_000;
/** A page waits no longer for them: while the database is slow, the menu has no numbers. */
const PATIENCE_MS = 250;

/** Returns a function that gives the numbers, by two look-ups that all pages share; undefined where they are not there in time. */
export function menuCounts(db: Database, clock: Pick<Clock, 'monotonic' | 'sleep'>): () => Promise<MenuCounts | undefined> {
  let known: { readonly counts: MenuCounts; readonly at: number } | undefined;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      const { open } = await countOngoingIssues(db.prisma);
      known = { counts: { issues: open, holds: await countOpenHolds(db.prisma) }, at: clock.monotonic() };
    } catch {
      known = undefined; // The page itself says what is wrong with the database.
    } finally {
      reading = undefined;
    }
  }

  const isFresh = () => known !== undefined && clock.monotonic() < known.at + FRESH_MS;
  return async () => {
    if (isFresh()) return known?.counts;
    reading ??= read();
    const waiting = new AbortController();
    await Promise.race([reading, clock.sleep(PATIENCE_MS, waiting.signal).catch(() => undefined)]);
    waiting.abort();
    return isFresh() ? known?.counts : undefined;
  };
}
