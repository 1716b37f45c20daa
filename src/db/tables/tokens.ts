// muster.tokens: the encrypted token pair of each company. The epoch grows with every lease (refresh-leases.ts) and with every stored pair: a write
// under an older epoch finds no row. All times are the database's, since
// processes on several machines compare them. Lock order: the connection before its token.
import { type CompanyKey, companyNotFound } from '../../core/company.js';
import type { ErrorCode } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { isOf, type OwnQuietHours } from './connections.js';
import { IS_OURS } from './installation.js';
import { standingBreakers, TURN, type Turn } from './refresh-breakers.js';
import { IS_JUST_RENEWED, IS_REFUSED_FOR_LONG } from './refused-tokens.js';

/** Names one state of a company's token and, when it was just taken, the right to refresh it; a newer epoch ends both. */
export interface Lease {
  readonly company: CompanyKey;
  readonly epoch: bigint;
}

/** A company's token as it is stored, judged by the database's clock. */
export interface StoredToken extends Lease, OwnQuietHours {
  /** Encrypted. */
  readonly accessToken: string | null;
  /** Encrypted again at every store, so that the ciphertext also names the edition. */
  readonly refreshToken: string;
  /** The access token is valid for some seconds yet. */
  readonly usable: boolean;
  /** It is time to refresh. A retry planned later than the longest put-off was written before the clock went back. */
  readonly due: boolean;
  readonly refreshAt: Date;
  /** Failures in a row that were not the company's fault. */
  readonly transientFailures: number;
  /** The code of the last of them. */
  readonly lastFailure: ErrorCode | null;
  /** How many of these were lost answers or unexplained errors. */
  readonly putOffs: number;
  /** The status and the error code of the last response that granted nothing. */
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  /** This refresh token was sent with an unknown outcome; includes the running attempt. */
  readonly isUnanswered: boolean;
  /** Whether a token that was just renewed was refused everywhere, and none was accepted since. */
  readonly isRefused: boolean;
  /** Whether that began at least half a minute ago. */
  readonly isRefusedForLong: boolean;
  /** Address of a list that accepts tokens which the company's own record refuses. */
  readonly witness: string | null;
  /** Whether the pair was stored less than a minute ago, not before the first of several refusals, and its access token has not expired: then a 401 is not a matter of its age. */
  readonly isJustRenewed: boolean;
  /** Another process may be refreshing it. */
  readonly isLeased: boolean;
  readonly reauthorizationReason: string | null;
  /** The grant under which the access token was given. */
  readonly grantNumber: number;
  /** Tokens may be refreshed in this database. */
  readonly isOurs: boolean;
  /** Whether the circuit breaker allows its refresh now. */
  readonly turn: Turn;
  /** The database's time when the row was read, for `wasRemovedSince`. */
  readonly readAt: string;
}

/** A token pair to store: encrypted once, so that a repeated write recognizes its own. Both times count from now. */
export interface SealedPair {
  readonly accessToken: string | null;
  readonly refreshToken: string;
  readonly lifetimeSeconds: number;
  readonly refreshAfterSeconds: number;
}

/**
 * An access token used in its last seconds would expire on the way, and one whose lifetime is in whole seconds may end a second
 * earlier than it says. For a very short lifetime, the last seconds are at most this share.
 */
const LAST_SECONDS = 5;
const LAST_SHARE = 0.4;

/** The longest pause, whatever the service asks for. */
export const LONGEST_RETRY_AFTER_SECONDS = 900;

/** The longest time for which a refresh is put off. */
export const LONGEST_PUT_OFF_SECONDS = 3_600;

/**
 * How long one process may refresh a company's token alone. Too short, and two processes send the same refresh token, which
 * costs the authorization; too long, and a company waits after a crash, which costs half a minute.
 */
export const LEASE_MS = 30_000;

/** The state of a stored pair before the first attempt to refresh it. */
const UNTRIED = Prisma.sql`lease_owner = NULL, lease_until = NULL, attempt_started_at = NULL, ambiguous_attempts = 0,
  transient_failures = 0, last_failure = NULL, put_offs = 0, hastened_until = NULL, not_before = NULL, last_status = NULL, last_error = NULL`;

/** Throws `company_not_found`. */
export async function findToken(tx: Transaction, company: CompanyKey): Promise<StoredToken> {
  const [row] = await tx.$queryRaw<Omit<StoredToken, 'company'>[]>`
    WITH ${standingBreakers(LEASE_MS)}
    SELECT t.epoch, t.access_token AS "accessToken", t.refresh_token AS "refreshToken",
           t.access_token IS NOT NULL
             AND t.expires_at - LEAST(${LAST_SECONDS} * interval '1 second', (t.expires_at - t.refreshed_at) * ${LAST_SHARE}::float8) > now() AS usable,
           t.refresh_at <= now() OR (
             (t.transient_failures > 0 OR t.access_token IS NULL)
             AND t.refresh_at > now() + ${LONGEST_PUT_OFF_SECONDS} * interval '1 second') AS due,
           t.refresh_at AS "refreshAt", t.transient_failures AS "transientFailures", t.last_failure AS "lastFailure",
           CASE WHEN t.transient_failures > 0 THEN t.put_offs ELSE 0 END AS "putOffs", t.last_status AS "lastStatus", t.last_error AS "lastError",
           t.ambiguous_attempts > 0 AS "isUnanswered",
           t.refused_at IS NOT NULL AS "isRefused", ${IS_REFUSED_FOR_LONG} AS "isRefusedForLong", t.witness, ${IS_JUST_RENEWED} AS "isJustRenewed",
           t.lease_until IS NOT NULL AND t.lease_until > now() AS "isLeased",
           c.reauthorization_reason AS "reauthorizationReason", c.grant_number AS "grantNumber", c.quiet_hours AS "quietHours", ${IS_OURS} AS "isOurs", ${TURN} AS turn,
           now()::text AS "readAt"
    FROM muster.connections c JOIN muster.tokens t USING (environment, company_id)
    WHERE ${isOf(company)}`;
  if (!row) throw companyNotFound(company);
  return { company, ...row };
}

/** Whether the stored refresh token is this ciphertext. */
export async function isStored(tx: Transaction, { company, sealed }: { company: CompanyKey; sealed: string }): Promise<boolean> {
  const rows = await tx.$queryRaw<unknown[]>`SELECT FROM muster.tokens WHERE ${isOf(company)} AND refresh_token = ${sealed}`;
  return rows.length > 0;
}

/** The companies whose token is due, without a lease and not held, the longest due first; without companies that must authorize again. */
export function findDueTokens(
  db: Database,
  { environments, limit }: { environments: string[]; limit: number },
): Promise<(CompanyKey & OwnQuietHours)[]> {
  return db.prisma.$queryRaw`
    WITH ${standingBreakers(LEASE_MS)}
    SELECT environment, company_id::text AS "companyId", c.quiet_hours AS "quietHours"
    FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
    WHERE t.refresh_at <= now() AND c.reauthorization_reason IS NULL AND environment = ANY(${environments})
      AND (t.lease_until IS NULL OR t.lease_until <= now()) AND ${IS_OURS}
      AND ${TURN} <> 'held'
    ORDER BY t.refresh_at LIMIT ${limit}::int`;
}

/**
 * Stores the pair of a new authorization: it replaces the stored pair and outdates every running refresh of it. The first epoch
 * is the time, so that a company that was removed and came back never repeats an old epoch. `receivedAt`: a time of the database's, for a pair that was received earlier.
 */
export async function saveToken(
  tx: Transaction,
  {
    company: { environment, companyId },
    pair,
    receivedAt = null,
  }: { company: CompanyKey; pair: SealedPair; receivedAt?: string | null },
): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO muster.tokens AS t (environment, company_id, epoch, access_token, refresh_token, expires_at, refreshed_at, refresh_at)
    VALUES (${environment}, ${companyId}::uuid, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
            ${pair.accessToken}, ${pair.refreshToken},
            now() + ${pair.lifetimeSeconds}::float8 * interval '1 second', COALESCE(${receivedAt}::text::timestamptz, now()),
            now() + ${pair.refreshAfterSeconds}::float8 * interval '1 second')
    ON CONFLICT (environment, company_id) DO UPDATE SET
      access_token = EXCLUDED.access_token, refresh_token = EXCLUDED.refresh_token, expires_at = EXCLUDED.expires_at,
      refreshed_at = EXCLUDED.refreshed_at, refresh_at = EXCLUDED.refresh_at, epoch = t.epoch + 1,
      refused_at = NULL, ${UNTRIED}`;
}

/**
 * Stores the response to a refresh: replaces the pair whose refresh token was spent, and only that pair. Returns the new epoch, or
 * undefined if a newer authorization was stored. A lost lease does not matter: the new pair succeeds the stored
 * token, and dropping it would lose the company. Harmless when repeated.
 */
export async function replaceToken(
  tx: Transaction,
  { spent, pair }: { spent: StoredToken; pair: SealedPair },
): Promise<bigint | undefined> {
  const [row] = await tx.$queryRaw<{ epoch: bigint }[]>`
    UPDATE muster.tokens SET
      access_token = ${pair.accessToken}, refresh_token = ${pair.refreshToken}, epoch = epoch + 1,
      expires_at = now() + ${pair.lifetimeSeconds}::float8 * interval '1 second', refreshed_at = now(),
      refresh_at = now() + ${pair.refreshAfterSeconds}::float8 * interval '1 second', ${UNTRIED}
    WHERE ${isOf(spent.company)} AND (epoch = ${spent.epoch} OR refresh_token IN (${spent.refreshToken}, ${pair.refreshToken}))
    RETURNING epoch`;
  return row?.epoch;
}

/** Whether the company's pair was stored at `since`, a time of the database's, or later. */
export async function isStoredSince(
  tx: Transaction,
  { company, since }: { company: CompanyKey; since: string },
): Promise<boolean> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT FROM muster.tokens WHERE ${isOf(company)} AND refreshed_at >= ${since}::text::timestamptz`;
  return rows.length > 0;
}
