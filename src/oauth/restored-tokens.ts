import { isMusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { wasRemovedSince } from '../db/tables/audit.js';
import { addCompany } from '../db/tables/companies.js';
import { authorizeConnection, lockConnection } from '../db/tables/connections.js';
import { readStanding } from '../db/tables/installation.js';
import { closeBreakers } from '../db/tables/refresh-breakers.js';
import { isStoredSince, saveToken } from '../db/tables/tokens.js';
import { inTransaction } from '../db/transaction.js';
import { recordAuthorizationRestored } from '../notifications/events.js';
import { notOurs } from './installation.js';
import { type JournalEntry, newestOfEach } from './token-journal.js';
import type { Vault } from './vault.js';

/** What became of the newest entry of each company. */
export interface RestoredTokens {
  /** Its token is the company's now, and is refreshed next. */
  readonly restored: number;
  /** The database has the token of that entry, or a newer one. */
  readonly current: number;
  readonly removed: number;
  /** Their encryption key is missing, or they are damaged. */
  readonly unreadable: number;
}

/**
 * Gives each company its newest token of the journals, if that is newer than the database's, as after a restore. Tokens that are held are refreshed again: one at a time, until
 * the service grants one. May be repeated, and run beside workers. Throws `installation_detached`.
 */
export async function restoreTokens(db: Database, vault: Vault, entries: readonly JournalEntry[]): Promise<RestoredTokens> {
  if ((await readStanding(db.prisma)) === 'detached') throw notOurs('detached');
  const count = { restored: 0, current: 0, removed: 0, unreadable: 0 };
  for (const entry of newestOfEach(entries)) count[await restore(db, vault, entry)] += 1;
  if (count.restored > 0) await inTransaction(db, (tx) => closeBreakers(tx));
  return count;
}

async function restore(db: Database, vault: Vault, entry: JournalEntry): Promise<keyof RestoredTokens> {
  const { at, refreshToken: sealed, ...company } = entry;
  if (sealed === null) return 'removed';
  try {
    const refreshToken = vault.openSuccessor({ ...company, refreshToken: sealed });
    const pair = vault.seal(company, { accessToken: undefined, refreshToken, lifetimeSeconds: 0, refreshAfterSeconds: 0 });
    return await inTransaction(db, async (tx) => {
      await lockConnection(tx, company);
      if (await wasRemovedSince(tx, company, at)) return 'removed';
      if (await isStoredSince(tx, { company, since: at })) return 'current';
      await authorizeConnection(tx, company);
      await addCompany(tx, company);
      await saveToken(tx, { company, pair });
      await recordAuthorizationRestored(tx, company);
      return 'restored';
    });
  } catch (error) {
    if (isMusterError(error, 'token_unreadable')) return 'unreadable';
    throw error;
  }
}
