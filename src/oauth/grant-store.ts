import type { Clock } from '../core/clock.js';
import { type CompanyKey, logFieldsOf } from '../core/company.js';
import type { ByEnvironment } from '../core/provider-settings.js';
import type { Secret } from '../core/secret.js';
import type { Database } from '../db/database.js';
import { addCompany } from '../db/tables/companies.js';
import { authorizeConnection } from '../db/tables/connections.js';
import { saveToken } from '../db/tables/tokens.js';
import { inTransaction, type Transaction, untilCommitted } from '../db/transaction.js';
import { recordAuthorizationRestored } from '../notifications/events.js';
import type { Logger } from '../observability/logger.js';
import type { Connections } from './connections.js';
import { refreshAfterSeconds } from './refresh-schedule.js';
import type { Grant } from './token-answer.js';
import type { TokenEndpoint } from './token-endpoint.js';
import type { Vault } from './vault.js';

/** The parts that everything that receives tokens is built from. */
export interface Dependencies {
  readonly db: Database;
  readonly vault: Vault;
  readonly connections: Connections;
  readonly endpoints: ByEnvironment<TokenEndpoint>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly refreshMarginSeconds?: number | undefined;
  /** 0 to 1; Math.random unless a test owns it. */
  readonly random?: () => number;
}

/** A grant with which a company can be kept. */
type LastingGrant = Grant & { readonly refreshToken: Secret };

/**
 * Stores a grant: the connection, its token and the company's row appear together. A company that is there gets the newer
 * authorization, and `created` is false. Undefined, and nothing stored, when `mayCommit`, asked last in the same transaction, says no.
 */
export async function saveGrant(
  { db, vault, refreshMarginSeconds, random = Math.random, logger }: Dependencies,
  company: CompanyKey,
  grant: LastingGrant,
  mayCommit = async (_tx: Transaction) => true,
): Promise<{ readonly created: boolean } | undefined> {
  const refreshAfter = refreshAfterSeconds(grant.lifetimeSeconds, refreshMarginSeconds, random());
  const pair = vault.seal(company, { ...grant, refreshAfterSeconds: refreshAfter });
  const work = async (tx: Transaction) => {
    const created = await authorizeConnection(tx, company);
    await addCompany(tx, company);
    await saveToken(tx, { company, pair });
    await recordAuthorizationRestored(tx, company);
    if (!(await mayCommit(tx))) throw new Forbidden();
    return { created };
  };
  const saved = await untilCommitted(() =>
    inTransaction(db, work).catch((error: unknown) => {
      if (error instanceof Forbidden) return undefined;
      throw error;
    }),
  );
  if (saved) logger.info({ ...logFieldsOf(company), ...saved }, 'company onboarded');
  return saved;
}

/** Keeps a refresh token that cannot be used for its company now: the service has used up every token before it. */
export function quarantine({ db, vault }: Dependencies, company: CompanyKey, refreshToken: Secret): Promise<void> {
  return untilCommitted(() => vault.quarantine(db.prisma, company, refreshToken));
}

/** Rolls the transaction back. */
class Forbidden extends Error {}
