import type { CompanyKey } from '../core/company.js';
import type { ErrorCode } from '../core/errors.js';
import { TOKEN_DEADLINE_MS } from './token-endpoint.js';
import type { Sql } from './vault.js';

/**
 * How long one holder may refresh a company's token undisturbed. Too short and two send the same refresh token, which
 * costs the authorization; too long and a company waits after a crash, which costs half a minute.
 */
export const LEASE_MS = 30_000;

/** What must be left of the lease when the token is sent: the exchange at its longest, and storing its answer. */
export const NEEDED_MS = TOKEN_DEADLINE_MS + 5_000;

/**
 * Takes the right to refresh; undefined while somebody else has it. Moves the fence: what an earlier holder writes later
 * finds no row. All times are the database's, since holders on several machines compare them.
 */
export async function takeLease(sql: Sql, { environment, companyId }: CompanyKey, owner: string): Promise<bigint | undefined> {
  const [row] = await sql.$queryRaw<{ fence: bigint }[]>`
    UPDATE muster.tokens
    SET fence = fence + 1, lease_owner = ${owner}, lease_until = clock_timestamp() + ${LEASE_MS}::float8 * interval '1 millisecond'
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND (lease_until IS NULL OR lease_until <= now())
    RETURNING fence`;
  return row?.fence;
}

/**
 * A lease longer than any that is given was written before the clock went back: a holder that died then would keep the
 * company waiting for as long as the clock jumped. It gets a whole lease from now, in case it lives.
 */
export async function shortenLease(sql: Sql, { environment, companyId }: CompanyKey): Promise<void> {
  await sql.$executeRaw`
    UPDATE muster.tokens SET lease_until = clock_timestamp() + ${LEASE_MS}::float8 * interval '1 millisecond'
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid
      AND lease_until > clock_timestamp() + ${LEASE_MS}::float8 * interval '1 millisecond'`;
}

/**
 * Writes down, right before the refresh token is sent, that it is about to be: until its outcome is written, this attempt
 * is one of the `unanswered` ones, whatever becomes of this process. False when the lease was lost or too little is left
 * of it: then it must not be sent.
 */
export async function beginAttempt(
  sql: Sql,
  { environment, companyId }: CompanyKey,
  fence: bigint,
  unanswered: number,
): Promise<boolean> {
  const begun = await sql.$executeRaw`
    UPDATE muster.tokens
    SET attempt_started_at = COALESCE(attempt_started_at, clock_timestamp()), ambiguous_attempts = ${unanswered}::int
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND fence = ${fence}
      AND lease_until > clock_timestamp() + ${NEEDED_MS}::float8 * interval '1 millisecond'`;
  return begun > 0;
}

/** Gives the lease back with nothing changed: there was nothing to do, or it could not be done. */
export async function releaseLease(sql: Sql, { environment, companyId }: CompanyKey, fence: bigint): Promise<void> {
  await sql.$executeRaw`
    UPDATE muster.tokens SET lease_owner = NULL, lease_until = NULL
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND fence = ${fence}`;
}

/** The same, and not before `seconds` have passed is it tried again. */
export async function putOff(sql: Sql, { environment, companyId }: CompanyKey, fence: bigint, seconds: number): Promise<void> {
  await sql.$executeRaw`
    UPDATE muster.tokens SET lease_owner = NULL, lease_until = NULL, refresh_at = now() + ${seconds}::float8 * interval '1 second'
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND fence = ${fence}`;
}

/** Gives the lease back after an attempt that granted nothing; the next one is made in `retryAfterSeconds`. */
export async function postpone(
  sql: Sql,
  { environment, companyId }: CompanyKey,
  fence: bigint,
  outcome: { unanswered: number; failure: ErrorCode; retryAfterSeconds: number },
): Promise<void> {
  await sql.$executeRaw`
    UPDATE muster.tokens SET
      lease_owner = NULL, lease_until = NULL, ambiguous_attempts = ${outcome.unanswered}::int,
      attempt_started_at = CASE WHEN ${outcome.unanswered}::int > 0 THEN attempt_started_at END,
      transient_failures = transient_failures + 1, last_failure = ${outcome.failure},
      refresh_at = now() + ${outcome.retryAfterSeconds}::float8 * interval '1 second'
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND fence = ${fence}`;
}

/** Gives the lease back for good, for the company must authorize again. False when it was lost, or a newer pair was stored. */
export async function abandon(sql: Sql, { environment, companyId }: CompanyKey, fence: bigint): Promise<boolean> {
  const abandoned = await sql.$executeRaw`
    UPDATE muster.tokens SET lease_owner = NULL, lease_until = NULL, attempt_started_at = NULL
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND fence = ${fence}`;
  return abandoned > 0;
}

/** Keeps the connection from being removed or changed until the transaction ends; false when it is not there. Before its token. */
export async function lockConnection(tx: Sql, { environment, companyId }: CompanyKey): Promise<boolean> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM muster.connections WHERE environment = ${environment} AND company_id = ${companyId}::uuid FOR UPDATE`;
  return rows.length > 0;
}

/** The longest outage of an authorization server that is believed. After it, a company that gets no answer is told so. */
const LONGEST_SILENCE_HOURS = 24;

/**
 * Whether it is the authorization server that is silent, and not this company's token that is lost: others of the
 * environment lack an answer, too, and nobody else was granted anything since this company's first unanswered attempt.
 */
export async function serviceIsSilent(sql: Sql, { environment, companyId }: CompanyKey): Promise<boolean> {
  const [row] = await sql.$queryRaw<{ silent: boolean | null }[]>`
    SELECT ours.attempt_started_at > now() - ${LONGEST_SILENCE_HOURS} * interval '1 hour'
       AND EXISTS (
         SELECT FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
         WHERE t.environment = ours.environment AND t.company_id <> ours.company_id
           AND t.ambiguous_attempts > 0 AND c.reauthorization_reason IS NULL)
       AND NOT EXISTS (
         SELECT FROM muster.tokens t
         WHERE t.environment = ours.environment AND t.company_id <> ours.company_id
           AND t.refreshed_at > ours.attempt_started_at) AS silent
    FROM muster.tokens ours WHERE environment = ${environment} AND company_id = ${companyId}::uuid`;
  return row?.silent ?? false;
}
