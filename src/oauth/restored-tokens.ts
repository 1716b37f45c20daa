import type { CompanyKey } from '../core/company.js';
import { isMusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction } from '../db/connection/transaction.js';
import { wasRemovedSince } from '../db/tables/audit.js';
import { addCompany } from '../db/tables/companies.js';
import { authorizeConnection, type ConnectionGrant, lockConnection, recordConnectionGrant } from '../db/tables/connections.js';
import { readStanding } from '../db/tables/installation.js';
import { closeBreakers, openBreakers } from '../db/tables/refresh-breakers.js';
import { isStoredSince, saveToken } from '../db/tables/tokens.js';
import { recordAuthorizationRestored } from '../notifications/events.js';
import type { Connections } from './connections.js';
import { RolledBack } from './grant-store.js';
import { notOurs } from './installation.js';
import { type JournalEntry, newestOfEach } from './token-journal.js';
import type { Vault } from './vault.js';

/** Counts of companies by the outcome of their newest entry. */
export interface RestoredTokens {
  /** The token of the entry is the company's now, and is refreshed next. */
  readonly restored: number;
  /** The database already has the token of the entry, or a newer one. */
  readonly current: number;
  /** Companies that were removed. */
  readonly removed: number;
  /** Entries whose encryption key is missing, or that are damaged. */
  readonly unreadable: number;
  /** Removed companies that this database still has. No requests are sent for them, and a person must remove them again. */
  readonly toRemove: readonly CompanyKey[];
}

interface Dependencies {
  readonly db: Database;
  readonly vault: Vault;
  readonly connections: Connections;
}

/**
 * Gives each company its newest token from the journals, if that is newer than the database's, as after a restore. Tokens are held until it ends, and then refreshed one at a
 * time until ten in a row were granted. May be repeated, also with more journals, and run while workers run. If it is interrupted, tokens stay held. Throws `installation_detached`.
 */
export async function restoreTokens(deps: Dependencies, entries: readonly JournalEntry[]): Promise<RestoredTokens> {
  const { db } = deps;
  const count = { restored: 0, current: 0, removed: 0, unreadable: 0 };
  const toRemove: CompanyKey[] = [];
  if ((await readStanding(db.prisma)) === 'detached') throw notOurs('detached');
  await inTransaction(db, openBreakers);
  for (const entry of newestOfEach(entries)) {
    const outcome = await restore(deps, entry);
    if (outcome === 'to_remove') toRemove.push({ environment: entry.environment, companyId: entry.companyId });
    count[outcome === 'to_remove' ? 'removed' : outcome] += 1;
  }
  await inTransaction(db, (tx) => closeBreakers(tx));
  return { ...count, toRemove };
}

type Outcome = 'restored' | 'current' | 'removed' | 'to_remove' | 'unreadable';

async function restore({ db, vault, connections }: Dependencies, entry: JournalEntry): Promise<Outcome> {
  const { at, refreshToken: sealed, authorizedAt, ...company } = entry;
  try {
    if (sealed === null) return await inTransaction(db, (tx) => endRemoved(tx, connections, entry));
    const refreshToken = vault.openRefresh({ company, refreshToken: sealed });
    const pair = vault.seal(company, { accessToken: undefined, refreshToken, lifetimeSeconds: 0, refreshAfterSeconds: 0 });
    return await inTransaction(db, async (tx) => {
      // Checked again, because a person may have detached it since.
      if ((await readStanding(tx)) === 'detached') throw notOurs('detached');
      // This comes first, because it locks the connection, even one that is just being added.
      const grant = await authorizeConnection(tx, company);
      if (await wasRemovedSince(tx, company, at)) throw new RolledBack('removed');
      if (await isStoredSince(tx, { company, since: at })) throw new RolledBack('current');
      await addCompany(tx, company);
      if (isOfLaterGrant(grant, authorizedAt)) await recordConnectionGrant(tx, { company, isNew: true, claims: null });
      await saveToken(tx, { company, pair, receivedAt: at });
      await recordAuthorizationRestored(tx, company);
      return 'restored' as const;
    });
  } catch (error) {
    if (error instanceof RolledBack) return (error as RolledBack<Outcome>).outcome;
    if (isMusterError(error, 'token_unreadable')) return 'unreadable';
    throw error;
  }
}

/** Whether a person has authorized since the backup. If tokens can be read, the first refresh finds it out from their claims instead. */
function isOfLaterGrant(
  { created, grantClaims, authorizedAt }: ConnectionGrant & { created: boolean },
  last: string | undefined,
): boolean {
  return !created && grantClaims === null && last !== undefined && Date.parse(last) > authorizedAt.getTime();
}

/** The token of a company that was removed later must not be sent. */
async function endRemoved(tx: Transaction, connections: Connections, { at, ...company }: JournalEntry): Promise<Outcome> {
  if (!(await lockConnection(tx, company))) return 'removed';
  if (await isStoredSince(tx, { company, since: at })) return 'current';
  await connections.requireReauthorization(company, 'removed_after_backup', tx);
  return 'to_remove';
}
