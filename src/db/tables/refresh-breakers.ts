// muster.refresh_breakers: a circuit breaker for the refreshes of each environment. A database whose refresh tokens were spent elsewhere, by the installation that a backup was
// taken of or by a second one, must not offer them all to the service.
//
//   one at a time -> side by side   a refresh was granted
//   side by side -> one at a time   the service refused a refresh token, or the server or the table of the tokens is another one than before: it may have been restored
//   either -> open                  three refusals within ten minutes, and more than a quarter of the refreshes of that time
//   open -> side by side            two trials in a row were granted
//   open -> one at a time           a person closed it
//
// One at a time, a refresh is a *trial*: its company is in the row until its outcome is known. While the breaker is open, there is a trial every five minutes, of the due company
// whose pair is newest; the other companies are *held*, except those whose pair is newer than the opening. Lock order: the token, then the breaker.
import type { CompanyKey, Environment } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../transaction.js';

/** Refusals that open a breaker. */
const REFUSALS = 3;
/** The time in which they count. */
const MINUTES = 10;
/** They must be more than one in so many refreshes: a few companies always leave. */
const ONE_IN = 4;
const MINUTES_BETWEEN_TRIALS = 5;
/** Trials in a row that close a breaker. */
const GRANTS = 2;

const TOKENS_TABLE = Prisma.sql`'muster.tokens'::regclass::oid::bigint`;
/** Of a row `b` of muster.refresh_breakers: the server and the table of the tokens are still those with which it was written. */
const IS_SAME_PLACE = Prisma.sql`(b.server_started_at = pg_postmaster_start_time() AND b.tokens_table = ${TOKENS_TABLE}) IS TRUE`;

/** Of a breaker `b` that is not open: refreshes go side by side. */
const IS_TRUSTED = Prisma.sql`(b.is_trusted AND ${IS_SAME_PLACE})`;

/** Of a row `t` of muster.tokens and its breaker `b`: its refresh token may be sent while others are. */
const IS_SIDE_BY_SIDE = Prisma.sql`CASE WHEN b.opened_at IS NULL THEN ${IS_TRUSTED} ELSE t.refreshed_at >= b.opened_at END`;

/** A condition on a row `t` of muster.tokens: its refresh token may be sent while others are. */
export const MAY_GO_SIDE_BY_SIDE = Prisma.sql`EXISTS (SELECT FROM muster.refresh_breakers b WHERE b.environment = t.environment AND ${IS_SIDE_BY_SIDE})`;

/** Of a breaker `b` and a length of leases in ms: no trial is under way. One that lasts longer than any lease was written before the clock went back. */
const isIdle = (leaseMs: number) =>
  Prisma.sql`(b.trial_until IS NULL OR b.trial_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond')`;

/** Of an open breaker `b`: the company whose token is tried next, where it is time to. */
const NEXT_TRIAL = Prisma.sql`CASE WHEN b.next_trial_at <= now() THEN (
  SELECT o.company_id FROM muster.tokens o JOIN muster.connections c USING (environment, company_id)
  WHERE o.environment = b.environment AND o.refreshed_at < b.opened_at AND o.refresh_at <= now() AND c.reauthorization_reason IS NULL
  ORDER BY o.refreshed_at DESC, o.company_id LIMIT 1) END`;

/**
 * `free`: the refresh token may be sent while others are. `alone`: as a trial. `waiting`: after the trial that is under way. `held`: not until the breaker is closed, or comes to
 * this company.
 */
export type Turn = 'free' | 'alone' | 'waiting' | 'held';

/** The `Turn` of a row `t` of muster.tokens. */
export function turnOf(leaseMs: number): Prisma.Sql {
  return Prisma.sql`(
    SELECT CASE WHEN ${IS_SIDE_BY_SIDE} THEN 'free'
      WHEN NOT ${isIdle(leaseMs)} AND (b.opened_at IS NULL OR b.trial_company_id = t.company_id) THEN 'waiting'
      WHEN b.opened_at IS NULL OR t.company_id = ${NEXT_TRIAL} THEN 'alone' ELSE 'held' END
    FROM muster.refresh_breakers b WHERE b.environment = t.environment)`;
}

/** Begins a trial of the company's token, whose lease the transaction has taken. False while another trial is under way, and where it is not this company's turn, or not any more. */
export async function beginTrial(
  tx: Transaction,
  { company: { environment, companyId }, leaseMs }: { company: CompanyKey; leaseMs: number },
): Promise<boolean> {
  const begun = await tx.$executeRaw`
    UPDATE muster.refresh_breakers b SET
      trial_company_id = ${companyId}::uuid, trial_until = clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond', is_trusted = FALSE,
      next_trial_at = now() + ${MINUTES_BETWEEN_TRIALS} * interval '1 minute',
      refused_at = CASE WHEN ${IS_SAME_PLACE} THEN b.refused_at ELSE '{}' END, watched_since = CASE WHEN ${IS_SAME_PLACE} THEN b.watched_since ELSE now() END,
      server_started_at = pg_postmaster_start_time(), tokens_table = ${TOKENS_TABLE}
    WHERE b.environment = ${environment} AND ${isIdle(leaseMs)} 
      AND CASE WHEN b.opened_at IS NULL THEN NOT ${IS_TRUSTED} ELSE ${NEXT_TRIAL} = ${companyId}::uuid END`;
  return begun > 0;
}

/** Ends a trial whose outcome says nothing of the tokens. */
export async function endTrial(db: Pick<Transaction, '$executeRaw'>, { environment, companyId }: CompanyKey): Promise<void> {
  await db.$executeRaw`
    UPDATE muster.refresh_breakers SET trial_company_id = NULL, trial_until = NULL
    WHERE environment = ${environment} AND trial_company_id = ${companyId}::uuid`;
}

/** The company's refresh was granted. Counts where it was a trial, and once however often it is repeated. */
export async function recordGrant(tx: Transaction, { environment, companyId }: CompanyKey): Promise<void> {
  const isOver = Prisma.sql`(opened_at IS NULL OR grants + 1 >= ${GRANTS})`;
  await tx.$executeRaw`
    UPDATE muster.refresh_breakers SET
      trial_company_id = NULL, trial_until = NULL, is_trusted = ${isOver}, opened_at = CASE WHEN NOT ${isOver} THEN opened_at END,
      grants = CASE WHEN ${isOver} THEN 0 ELSE grants + 1 END
    WHERE environment = ${environment} AND trial_company_id = ${companyId}::uuid`;
}

/** The service refused the company's refresh token, for a reason that is not known. True when that opened the breaker. */
export async function recordRefusal(tx: Transaction, { environment, companyId }: CompanyKey): Promise<boolean> {
  await tx.$queryRaw`SELECT FROM muster.refresh_breakers WHERE environment = ${environment} FOR UPDATE`;
  const [row] = await tx.$queryRaw<[{ opened: boolean }]>`
    WITH seen AS (
      SELECT ARRAY(SELECT at FROM unnest(b.refused_at) AS at WHERE at > now() - ${MINUTES} * interval '1 minute') || now() AS refused_at, (
        SELECT count(*) FROM muster.tokens t
        WHERE t.environment = b.environment AND t.refreshed_at > GREATEST(b.watched_since, now() - ${MINUTES} * interval '1 minute')) AS granted
      FROM muster.refresh_breakers b WHERE b.environment = ${environment}
    ), judged AS (
      SELECT refused_at, cardinality(refused_at) >= ${REFUSALS} AND cardinality(refused_at) * ${ONE_IN} > cardinality(refused_at) + granted AS is_much FROM seen)
    UPDATE muster.refresh_breakers b SET
      refused_at = judged.refused_at, is_trusted = FALSE, grants = 0,
      trial_company_id = CASE WHEN trial_company_id <> ${companyId}::uuid THEN trial_company_id END,
      trial_until = CASE WHEN trial_company_id <> ${companyId}::uuid THEN trial_until END,
      opened_at = CASE WHEN is_much AND opened_at IS NULL THEN now() ELSE opened_at END,
      next_trial_at = CASE WHEN is_much AND opened_at IS NULL THEN now() + ${MINUTES_BETWEEN_TRIALS} * interval '1 minute' ELSE next_trial_at END
    FROM judged WHERE b.environment = ${environment}
    RETURNING (b.opened_at = now()) IS TRUE AS opened`;
  return row.opened;
}

/** A person says that the tokens are good: refreshes go one at a time until one is granted. Returns the environments whose breaker was open. */
export async function closeBreakers(
  tx: Transaction,
  { environment = null }: { environment?: Environment | null | undefined } = {},
): Promise<Environment[]> {
  const closed = await tx.$queryRaw<{ environment: Environment }[]>`
    UPDATE muster.refresh_breakers SET opened_at = NULL, grants = 0, refused_at = '{}', is_trusted = FALSE
    WHERE opened_at IS NOT NULL AND (${environment}::text IS NULL OR environment = ${environment})
    RETURNING environment`;
  return closed.map((row) => row.environment).toSorted();
}
