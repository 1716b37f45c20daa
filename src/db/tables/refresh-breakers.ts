// muster.refresh_breakers: a circuit breaker for the refreshes of each environment. If the refresh tokens of a database were spent elsewhere, by the original of
// a restored backup or by a second installation, it must not send all of them to the service.
//
//   one at a time -> side by side   a refresh was granted; after a restart, a restore or an opening, ten in a row
//   side by side -> one at a time   the service refused a refresh token, or the server or the table of tokens has changed: it may have been restored
//   any -> open                     three refusals within ten minutes, and more than a quarter of the refreshes of that time; or tokens are being restored
//   open -> one at a time           two trials in a row were granted, no company is held any more, a person closed it, or the server was started again
//
// One at a time, a refresh is a *trial*: its company and lease are in the row until its outcome is known. While the breaker is open, there is a trial every five minutes, of the
// due company whose pair is newest; the other companies are *held*, except those whose pair is newer than the opening. Lock order: the token, then the breaker.
import type { CompanyKey, Environment } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';

/** This many refusals open a breaker. */
const REFUSALS = 3;
/** Refusals count for this long. */
const MINUTES = 10;
/** Refusals must be more than one in this many refreshes: a few companies always leave. */
const ONE_IN = 4;
const MINUTES_BETWEEN_TRIALS = 5;
/** Trials in a row that close a breaker. */
const GRANTS_TO_CLOSE = 2;
/** Trials in a row after which refreshes go side by side where many tokens may be spent: some tokens of a backup still work. */
const GRANTS_TO_TRUST = 10;

const TOKENS_TABLE = Prisma.sql`'muster.tokens'::regclass::oid::bigint`;
/** SQL: the server and the table of tokens are those with which breaker `b` was written. */
const IS_SAME_PLACE = Prisma.sql`(b.server_started_at = pg_postmaster_start_time() AND b.tokens_table = ${TOKENS_TABLE}) IS TRUE`;
/** SQL: refreshes go side by side, unless breaker `b` is open. */
const IS_TRUSTED = Prisma.sql`(b.is_trusted AND ${IS_SAME_PLACE})`;

/** SQL, on a row `t` of muster.tokens and its breaker `b`: the pair is older than the opening. */
export const IS_OLDER_THAN_OPENING = Prisma.sql`(t.refreshed_at < b.opened_at AND ${IS_SAME_PLACE})`;

/** SQL: breaker `b` is open and holds at least one company. */
const IS_OPEN = Prisma.sql`(b.opened_at IS NOT NULL AND EXISTS (
  SELECT FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
  WHERE t.environment = b.environment AND c.reauthorization_reason IS NULL AND ${IS_OLDER_THAN_OPENING}))`;

/** SQL, on a row `t` of muster.tokens: its refresh token may be sent while others are. */
export const MAY_GO_SIDE_BY_SIDE = Prisma.sql`EXISTS (
  SELECT FROM muster.refresh_breakers b
  WHERE b.environment = t.environment AND CASE WHEN ${IS_OPEN} THEN t.refreshed_at >= b.opened_at ELSE ${IS_TRUSTED} END)`;

/** SQL, on a breaker `b`, with the length of a lease in ms: no trial is under way. A trial that is older than any lease was written before the clock went back. */
const isIdle = (leaseMs: number) =>
  Prisma.sql`(b.trial_until IS NULL OR b.trial_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond')`;

/**
 * The company of an open breaker `b` whose token is tried next, if it is time. A company whose last attempt failed does not delay others. It does not use the time of the
 * transaction: a transaction that began before the breaker opened, and waited for its row, would mistake the next trial for one from before the clock went back.
 */
const NEXT_TRIAL = Prisma.sql`CASE WHEN b.next_trial_at NOT BETWEEN clock_timestamp() AND clock_timestamp() + ${MINUTES_BETWEEN_TRIALS} * interval '1 minute' THEN (
  SELECT t.company_id FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
  WHERE t.environment = b.environment AND ${IS_OLDER_THAN_OPENING} AND t.refresh_at <= now() AND c.reauthorization_reason IS NULL
  ORDER BY t.company_id IS NOT DISTINCT FROM b.trial_company_id, t.transient_failures > 0, t.refreshed_at DESC, t.company_id LIMIT 1) END`;

/**
 * `free`: the refresh token may be sent while others are. `alone`: as a trial. `waiting`: after the trial that is under way. `held`: not before the breaker is closed, or
 * reaches this company.
 */
export type Turn = 'free' | 'alone' | 'waiting' | 'held';

/** A common table expression with the breakers as they stand, for `TURN`. */
export function standingBreakers(leaseMs: number): Prisma.Sql {
  return Prisma.sql`breaker AS MATERIALIZED (
    SELECT b.environment, b.opened_at, b.trial_company_id, ${IS_OPEN} AS is_open, ${IS_TRUSTED} AS is_trusted, ${isIdle(leaseMs)} AS is_idle,
      CASE WHEN ${IS_OPEN} THEN ${NEXT_TRIAL} END AS next_company_id
    FROM muster.refresh_breakers b)`;
}

/** The `Turn` of a row `t` of muster.tokens; draws from `breaker`. */
export const TURN = Prisma.sql`COALESCE((
  SELECT CASE WHEN CASE WHEN is_open THEN t.refreshed_at >= opened_at ELSE is_trusted END THEN 'free'
    WHEN NOT is_idle AND (NOT is_open OR trial_company_id = t.company_id) THEN 'waiting'
    WHEN NOT is_open OR next_company_id = t.company_id THEN 'alone' ELSE 'held' END
  FROM breaker WHERE breaker.environment = t.environment), 'alone')`;

/** A company and the lease of its token. */
interface Attempt {
  readonly company: CompanyKey;
  readonly epoch: bigint;
}

const isTrial = ({ company: { environment, companyId }, epoch }: Attempt) =>
  Prisma.sql`b.environment = ${environment} AND b.trial_company_id = ${companyId}::uuid AND b.trial_epoch = ${epoch}`;

/**
 * Begins a trial under a lease that the transaction has taken. False while another trial is under way, and if it is not this company's turn. In another
 * database than before, the count begins again.
 */
export async function beginTrial(
  tx: Transaction,
  { company: { environment, companyId }, epoch, leaseMs }: Attempt & { leaseMs: number },
): Promise<boolean> {
  await tx.$executeRaw`INSERT INTO muster.refresh_breakers (environment) VALUES (${environment}) ON CONFLICT DO NOTHING`;
  const begun = await tx.$executeRaw`
    UPDATE muster.refresh_breakers b SET
      trial_company_id = ${companyId}::uuid, trial_epoch = ${epoch}, is_trusted = FALSE,
      trial_until = clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond',
      next_trial_at = now() + ${MINUTES_BETWEEN_TRIALS} * interval '1 minute',
      opened_at = CASE WHEN ${IS_OPEN} THEN b.opened_at END,
      grants = CASE WHEN ${IS_SAME_PLACE} THEN b.grants ELSE 0 END,
      grants_needed = CASE WHEN ${IS_SAME_PLACE} THEN b.grants_needed WHEN b.server_started_at IS NULL THEN 1 ELSE ${GRANTS_TO_TRUST} END,
      refused_at = CASE WHEN ${IS_SAME_PLACE} THEN b.refused_at ELSE '{}' END,
      watched_since = CASE WHEN ${IS_SAME_PLACE} THEN b.watched_since ELSE now() END,
      server_started_at = pg_postmaster_start_time(), tokens_table = ${TOKENS_TABLE}
    WHERE b.environment = ${environment} AND ${isIdle(leaseMs)}
      AND CASE WHEN ${IS_OPEN} THEN ${NEXT_TRIAL} = ${companyId}::uuid ELSE NOT ${IS_TRUSTED} END`;
  return begun > 0;
}

/** Ends a trial whose outcome says nothing about the tokens. */
export async function endTrial(db: Pick<Transaction, '$executeRaw'>, attempt: Attempt): Promise<void> {
  await db.$executeRaw`UPDATE muster.refresh_breakers b SET trial_epoch = NULL, trial_until = NULL WHERE ${isTrial(attempt)}`;
}

/** Records that a refresh was granted and its pair stored. Counts if it was a trial, and once however often it is repeated. */
export async function recordGrant(tx: Transaction, attempt: Attempt): Promise<void> {
  const closes = Prisma.sql`(${IS_OPEN} AND b.grants + 1 >= ${GRANTS_TO_CLOSE})`;
  await tx.$executeRaw`
    UPDATE muster.refresh_breakers b SET
      trial_epoch = NULL, trial_until = NULL,
      is_trusted = NOT ${IS_OPEN} AND b.grants + 1 >= b.grants_needed,
      opened_at = CASE WHEN ${IS_OPEN} AND NOT ${closes} THEN b.opened_at END,
      grants = CASE WHEN ${closes} THEN 0 ELSE b.grants + 1 END,
      grants_needed = CASE WHEN ${closes} THEN ${GRANTS_TO_TRUST} ELSE b.grants_needed END
    WHERE ${isTrial(attempt)}`;
}

/** Records that the service refused a refresh token for an unknown reason. True when that opened the breaker. */
export async function recordRefusal(tx: Transaction, attempt: Attempt): Promise<boolean> {
  const { environment } = attempt.company;
  await tx.$queryRaw`SELECT FROM muster.refresh_breakers WHERE environment = ${environment} FOR UPDATE`;
  await endTrial(tx, attempt);
  const [row] = await tx.$queryRaw<{ opened: boolean }[]>`
    WITH seen AS (
      SELECT ARRAY(SELECT at FROM unnest(b.refused_at) AS at WHERE at > now() - ${MINUTES} * interval '1 minute') || now() AS refused_at, (
        SELECT count(*) FROM muster.tokens t
        WHERE t.environment = b.environment AND t.refreshed_at > GREATEST(b.watched_since, now() - ${MINUTES} * interval '1 minute')) AS granted
      FROM muster.refresh_breakers b WHERE b.environment = ${environment}
    ), judged AS (
      SELECT refused_at, cardinality(refused_at) >= ${REFUSALS} AND cardinality(refused_at) * ${ONE_IN} > cardinality(refused_at) + granted AS opens FROM seen)
    UPDATE muster.refresh_breakers b SET
      is_trusted = FALSE, grants = 0, grants_needed = CASE WHEN ${IS_TRUSTED} THEN 1 ELSE b.grants_needed END,
      refused_at = CASE WHEN opens THEN '{}' ELSE judged.refused_at END,
      opened_at = CASE WHEN opens THEN now() ELSE b.opened_at END,
      next_trial_at = CASE WHEN opens THEN now() + ${MINUTES_BETWEEN_TRIALS} * interval '1 minute' ELSE b.next_trial_at END
    FROM judged WHERE b.environment = ${environment}
    RETURNING opens AS opened`;
  return row?.opened ?? false;
}

/** Holds the tokens of every company until `closeBreakers`: some are about to be replaced. */
export async function openBreakers(tx: Transaction): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.refresh_breakers SET
      opened_at = now(), refused_at = '{}', is_trusted = FALSE, grants = 0, next_trial_at = now() + ${MINUTES_BETWEEN_TRIALS} * interval '1 minute',
      server_started_at = pg_postmaster_start_time(), tokens_table = ${TOKENS_TABLE}`;
}

/** Closes the breakers for a person: refreshes go one at a time until ten in a row are granted. Returns the environments whose breaker was open. */
export async function closeBreakers(
  tx: Transaction,
  { environment = null }: { environment?: Environment | null | undefined } = {},
): Promise<Environment[]> {
  const closed = await tx.$queryRaw<{ environment: Environment; wasOpen: boolean }[]>`
    UPDATE muster.refresh_breakers b SET
      opened_at = NULL, refused_at = '{}', is_trusted = FALSE, grants = 0, grants_needed = ${GRANTS_TO_TRUST}, watched_since = now()
    FROM (SELECT environment, opened_at FROM muster.refresh_breakers FOR UPDATE) before
    WHERE b.environment = before.environment AND (${environment}::text IS NULL OR b.environment = ${environment})
    RETURNING b.environment, before.opened_at IS NOT NULL AS "wasOpen"`;
  return closed
    .filter(({ wasOpen }) => wasOpen)
    .map((row) => row.environment)
    .toSorted();
}

/** Whether the company's attempt without an outcome began before this database was in its place: then the attempt does not explain the refusal of its token. */
export async function wasAttemptedElsewhere(tx: Transaction, { environment, companyId }: CompanyKey): Promise<boolean> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT FROM muster.tokens t JOIN muster.refresh_breakers b USING (environment)
    WHERE t.environment = ${environment} AND t.company_id = ${companyId}::uuid AND t.attempt_started_at < b.watched_since`;
  return rows.length > 0;
}
