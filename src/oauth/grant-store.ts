import type { Clock } from '../core/clock.js';
import { type CompanyKey, logFieldsOf } from '../core/company.js';
import type { ByEnvironment } from '../core/provider-settings.js';
import type { QuietHours } from '../core/quiet-hours.js';
import type { Secret } from '../core/secret.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction } from '../db/connection/transaction.js';
import { wasRemovedSince } from '../db/tables/audit.js';
import { addCompany } from '../db/tables/companies.js';
import { authorizeConnection, lockConnection, recordConnectionGrant } from '../db/tables/connections.js';
import { hastenPutOffs } from '../db/tables/put-off-tokens.js';
import type { NewQuarantinedToken } from '../db/tables/quarantined-tokens.js';
import { isStored, saveToken } from '../db/tables/tokens.js';
import { recordAuthorizationRestored } from '../notifications/events.js';
import type { Logger } from '../observability/logger.js';
import type { WorkMetrics } from '../observability/work-metrics.js';
import type { Connections } from './connections.js';
import { refreshAfterSeconds } from './refresh-schedule.js';
import type { TokenEndpoint } from './token-endpoint.js';
import type { TokenJournal } from './token-journal.js';
import type { Grant } from './token-response.js';
import type { UnsavedTokenPairs } from './unsaved-token-pairs.js';
import type { Vault } from './vault.js';

/** The parts of every class that receives tokens. */
export interface Dependencies {
  readonly db: Database;
  readonly vault: Vault;
  readonly connections: Connections;
  readonly endpoints: ByEnvironment<TokenEndpoint>;
  readonly received: UnsavedTokenPairs;
  /** Undefined if TOKEN_JOURNAL is not set. */
  readonly journal?: Pick<TokenJournal, 'append'> | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly refreshMarginSeconds?: number | undefined;
  /** Refreshes wait for their end. Unset where a person waits for the token. */
  readonly quiet?: Pick<QuietHours, 'endOf'> | undefined;
  /** Counts refreshes. */
  readonly work?: WorkMetrics | undefined;
  /** 0 to 1; Math.random unless a test owns it. */
  readonly random?: () => number;
}

/** The origin of a token. */
export interface Origin extends Pick<NewQuarantinedToken, 'linkId' | 'successorOf'> {
  /** `databaseTime` before the request to the service. If the company was removed since, nothing of the response may be stored. */
  readonly since: string;
}

/** A grant with a refresh token, without which a company cannot be kept. */
type LastingGrant = Grant & { readonly refreshToken: Secret };

/**
 * Stores a grant: the connection, its token and the company's row appear together. An existing company gets the newer authorization, and `created`
 * is false; it counts as the same grant only if its access token shows so. Nothing is stored for a company that was removed since `origin.since`.
 * `mayCommit` is called last in the transaction; if it returns false, the refresh token goes to quarantine. Throws `token_not_stored`.
 */
export async function saveGrant(
  deps: Dependencies,
  { company, grant, origin }: { company: CompanyKey; grant: LastingGrant; origin: Origin },
  mayCommit: (tx: Transaction) => Promise<boolean>,
): Promise<{ readonly created: boolean } | 'removed' | 'overtaken'> {
  const { db, vault, received, journal, refreshMarginSeconds, random = Math.random, logger } = deps;
  const refreshAfter = refreshAfterSeconds(grant.lifetimeSeconds, refreshMarginSeconds, random());
  const pair = vault.seal(company, { ...grant, refreshAfterSeconds: refreshAfter });
  const work = async (tx: Transaction) => {
    const { created, grantClaims } = await authorizeConnection(tx, company);
    if (await wasRemovedSince(tx, company, origin.since)) throw new RolledBack('removed');
    await addCompany(tx, company);
    const { claims = null, isSame, namesPerson } = vault.readGrant(company, grant.accessToken, grantClaims);
    // The transaction may be repeated after it was committed.
    const isKnown = created || (isSame === true && namesPerson) || (await isStored(tx, { company, sealed: pair.refreshToken }));
    await recordConnectionGrant(tx, { company, isNew: !isKnown, claims });
    await saveToken(tx, { company, pair });
    await recordAuthorizationRestored(tx, company);
    if (!(await mayCommit(tx))) throw new RolledBack('overtaken');
    return { created };
  };
  const setAside = (reason: 'overtaken' | 'not_stored') =>
    inTransaction(db, (tx) => quarantineIn(deps, tx, { company, reason, origin, refreshToken: grant.refreshToken }));
  const store = async () => {
    const outcome = await inTransaction(db, work).catch((error: unknown) => {
      if (error instanceof RolledBack) return (error as RolledBack<'removed' | 'overtaken'>).outcome;
      throw error;
    });
    if (outcome === 'overtaken') await setAside('overtaken');
    if (typeof outcome === 'string') return outcome;
    logger.info({ ...logFieldsOf(company), ...outcome }, 'company onboarded');
    // The service grants again, which may help others.
    await hastenPutOffs(db.prisma, company).catch(() => {});
    return outcome;
  };
  await journal?.append(company, origin.since, grant.refreshToken, { isAuthorization: true });
  return received.keep({ company, store, setAside: () => setAside('not_stored'), successorOf: origin.successorOf });
}

type SetAside = Pick<NewQuarantinedToken, 'company' | 'reason'> & { readonly refreshToken: Secret; readonly origin: Origin };

/** Quarantines a refresh token that cannot be used for its company now, because the service accepts no earlier token. Throws `token_not_stored`. */
export function quarantine(deps: Dependencies, token: SetAside): Promise<void> {
  const store = () => inTransaction(deps.db, (tx) => quarantineIn(deps, tx, token));
  return deps.received.keep({ company: token.company, store, setAside: store, successorOf: token.origin.successorOf });
}

/** Quarantines it in the caller's transaction, which does nothing else. The token of a company that was removed since is dropped. */
export async function quarantineIn(
  { vault, logger }: Dependencies,
  tx: Transaction,
  { company, reason, refreshToken, origin: { since, ...origin } }: SetAside,
): Promise<void> {
  await lockConnection(tx, company);
  if (await wasRemovedSince(tx, company, since)) return;
  const dropped = await vault.quarantine(tx, { company, reason, ...origin }, refreshToken);
  if (dropped > 0) logger.warn({ ...logFieldsOf(company), dropped }, 'older refresh tokens left the quarantine, which is full');
}

/** Thrown in a transaction to undo it, with its outcome. */
export class RolledBack<T extends string> extends Error {
  constructor(readonly outcome: T) {
    super(outcome);
  }
}
