import { type CompanyKey, companyNotFound, describeCompany } from '../core/company.js';
import { type ErrorCode, MusterError } from '../core/errors.js';
import type { Secret } from '../core/secret.js';
import type { Transaction } from '../db/transaction.js';
import type { AccessToken } from '../http/token-source.js';
import type { Cipher } from './cipher.js';
import { LONGEST_RETRY_AFTER_SECONDS } from './refresh-schedule.js';

/** The database client, inside a transaction or not. */
export type Sql = Pick<Transaction, '$queryRaw' | '$executeRaw'>;

/** A token pair to keep. */
export interface TokenPair {
  readonly accessToken: Secret | undefined;
  readonly refreshToken: Secret;
  /** From now. */
  readonly lifetimeSeconds: number;
  /** From now. */
  readonly refreshAfterSeconds: number;
}

/** A token pair as it is written: encrypted once, so that a repeated write can recognize its own. */
export interface SealedPair extends Omit<TokenPair, 'accessToken' | 'refreshToken'> {
  readonly accessToken: string | null;
  readonly refreshToken: string;
}

/** What is stored of a company's token, judged by the database's clock. */
export interface StoredToken {
  readonly fence: bigint;
  /** Encrypted. */
  readonly accessToken: string | null;
  /** Encrypted; a new one at every store, so that it also names the edition. */
  readonly refreshToken: string;
  /** The access token will be valid for some seconds yet. */
  readonly usable: boolean;
  /** Time to refresh. A retry that is later than any is ever put off was written before the clock went back. */
  readonly due: boolean;
  readonly refreshAt: Date;
  readonly transientFailures: number;
  /** Why the last of them failed. */
  readonly lastFailure: ErrorCode | null;
  /** How often this refresh token was sent with an outcome that nobody knows; the attempt under way counts. */
  readonly unanswered: number;
  readonly reauthorizationReason: string | null;
}

/**
 * A token used in its last seconds would expire on the way, and one whose end is counted in whole seconds ends up to one
 * earlier than it says. Of a very short lifetime, at most this share.
 */
const LAST_SECONDS = 5;
const LAST_SHARE = 0.4;

/** The token pairs of muster.tokens, encrypted. Every store moves the fence. */
export class Vault {
  readonly #cipher: Cipher;

  constructor(cipher: Cipher) {
    this.#cipher = cipher;
  }

  /** Throws `company_not_found`. */
  async read(sql: Sql, company: CompanyKey): Promise<StoredToken> {
    const [row] = await sql.$queryRaw<StoredToken[]>`
      SELECT t.fence, t.access_token AS "accessToken", t.refresh_token AS "refreshToken",
             t.access_token IS NOT NULL
               AND t.expires_at - LEAST(${LAST_SECONDS} * interval '1 second', (t.expires_at - t.refreshed_at) * ${LAST_SHARE}::float8) > now() AS usable,
             t.refresh_at <= now() OR (
               (t.transient_failures > 0 OR t.access_token IS NULL)
               AND t.refresh_at > now() + ${LONGEST_RETRY_AFTER_SECONDS} * interval '1 second') AS due,
             t.refresh_at AS "refreshAt", t.transient_failures AS "transientFailures", t.last_failure AS "lastFailure",
             t.ambiguous_attempts AS "unanswered",
             c.reauthorization_reason AS "reauthorizationReason"
      FROM muster.connections c JOIN muster.tokens t USING (environment, company_id)
      WHERE environment = ${company.environment} AND company_id = ${company.companyId}::uuid`;
    if (row) return row;
    throw companyNotFound(company);
  }

  openAccess(company: CompanyKey, { accessToken, fence }: StoredToken): AccessToken {
    if (accessToken === null) throw new MusterError('internal_error', `${describeCompany(company)} has no access token`);
    return { value: this.#cipher.open(accessToken, company, 'access_token'), version: fence };
  }

  openRefresh(company: CompanyKey, { refreshToken }: StoredToken): Secret {
    return this.#cipher.open(refreshToken, company, 'refresh_token');
  }

  seal(company: CompanyKey, { accessToken, refreshToken, ...times }: TokenPair): SealedPair {
    return {
      ...times,
      accessToken: accessToken ? this.#cipher.seal(accessToken, company, 'access_token') : null,
      refreshToken: this.#cipher.seal(refreshToken, company, 'refresh_token'),
    };
  }

  /**
   * A new authorization: whatever stood there, and whoever is refreshing it, is outdated now. The first fence is the time,
   * so that a company that was removed and came back never meets an old fence again.
   */
  async store(sql: Sql, { environment, companyId }: CompanyKey, pair: SealedPair): Promise<void> {
    await sql.$executeRaw`
      INSERT INTO muster.tokens AS t (environment, company_id, fence, access_token, refresh_token, expires_at, refreshed_at, refresh_at)
      VALUES (${environment}, ${companyId}::uuid, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
              ${pair.accessToken}, ${pair.refreshToken},
              now() + ${pair.lifetimeSeconds}::float8 * interval '1 second', now(),
              now() + ${pair.refreshAfterSeconds}::float8 * interval '1 second')
      ON CONFLICT (environment, company_id) DO UPDATE SET
        access_token = EXCLUDED.access_token, refresh_token = EXCLUDED.refresh_token, expires_at = EXCLUDED.expires_at,
        refreshed_at = EXCLUDED.refreshed_at, refresh_at = EXCLUDED.refresh_at, fence = t.fence + 1,
        lease_owner = NULL, lease_until = NULL, attempt_started_at = NULL, ambiguous_attempts = 0, transient_failures = 0,
        last_failure = NULL`;
  }

  /**
   * The answer to a refresh: replaces the pair whose refresh token was spent, and only that one. Gives the new fence;
   * undefined when a newer authorization was stored meanwhile. A lease that was lost does not matter: our answer succeeds
   * the token that is stored, and to drop it would lose the company. Harmless when repeated.
   */
  async succeed(sql: Sql, company: CompanyKey, spent: StoredToken, pair: SealedPair): Promise<bigint | undefined> {
    const [row] = await sql.$queryRaw<{ fence: bigint }[]>`
      UPDATE muster.tokens SET
        access_token = ${pair.accessToken}, refresh_token = ${pair.refreshToken}, fence = fence + 1,
        expires_at = now() + ${pair.lifetimeSeconds}::float8 * interval '1 second', refreshed_at = now(),
        refresh_at = now() + ${pair.refreshAfterSeconds}::float8 * interval '1 second',
        lease_owner = NULL, lease_until = NULL, attempt_started_at = NULL, ambiguous_attempts = 0, transient_failures = 0,
        last_failure = NULL
      WHERE environment = ${company.environment} AND company_id = ${company.companyId}::uuid
        AND (fence = ${spent.fence} OR refresh_token IN (${spent.refreshToken}, ${pair.refreshToken}))
      RETURNING fence`;
    return row?.fence;
  }

  /** Keeps a refresh token that belongs to no stored connection: it may be the only way back to that company. */
  async quarantine(sql: Sql, company: CompanyKey, refreshToken: Secret): Promise<void> {
    const sealed = this.#cipher.seal(refreshToken, company, 'refresh_token');
    await sql.$executeRaw`
      INSERT INTO muster.quarantined_tokens (environment, company_id, refresh_token)
      VALUES (${company.environment}, ${company.companyId}::uuid, ${sealed})`;
  }
}
