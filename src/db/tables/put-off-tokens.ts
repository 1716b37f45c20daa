// muster.tokens, the refreshes that were put off: when they are brought forward, and the service's answers to them.

import type { CompanyKey, Environment } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { readByIndex } from '../statements/by-index.js';
import { rowsOf } from './connections.js';

/** A thousand companies that were put off together must not come back together: each grant brings some forward, whose grants bring more. */
const HASTENED_BY_A_GRANT = 10;
const HASTENED_WITHIN_SECONDS = 5;
/** An attempt that comes sooner than this is left as it is. */
const SOON_SECONDS = 10;
/** Refreshes that a person's request for many syncs needs are made within this time. */
const MANY_WITHIN_SECONDS = 60;

/**
 * Brings put-off refreshes forward after another company of the environment was granted a token. Each is brought forward once in the time for which it was put off,
 * so that a company with a broken token is not retried at every grant. A service in trouble, or one that asked for patience, is left alone.
 */
export async function hastenPutOffs(
  db: Pick<Transaction, '$executeRaw'>,
  { environment }: { environment: Environment },
): Promise<void> {
  // MATERIALIZED, since a plan may look a joined subquery up again for each row, and lock further rows each time.
  await db.$executeRaw`
    WITH put_off AS MATERIALIZED (
      SELECT environment, company_id FROM muster.tokens
      WHERE environment = ${environment} AND put_offs > 0 AND transient_failures > 0
        AND refresh_at > now() + ${SOON_SECONDS}::float8 * interval '1 second'
        AND (not_before IS NULL OR not_before <= now())
        AND (last_status IS NULL OR (last_status NOT IN (408, 429) AND last_status < 500))
        AND (hastened_until IS NULL OR hastened_until <= now()) AND (lease_until IS NULL OR lease_until <= now())
      ORDER BY refresh_at LIMIT ${HASTENED_BY_A_GRANT}::int FOR UPDATE SKIP LOCKED
    )
    UPDATE muster.tokens t SET hastened_until = t.refresh_at, refresh_at = now() + random() * ${HASTENED_WITHIN_SECONDS}::float8 * interval '1 second'
    FROM put_off WHERE t.environment = put_off.environment AND t.company_id = put_off.company_id`;
}

/** Brings forward the put-off refreshes of companies whose syncs a person requests, many of them spread over a minute; none before the time that the service named. The caller has locked the connections. */
export async function hastenRefreshes(tx: Transaction, { companies }: { companies: readonly CompanyKey[] }): Promise<void> {
  const withinSeconds = companies.length > 1 ? MANY_WITHIN_SECONDS : 0;
  await tx.$executeRaw`
    UPDATE muster.tokens t SET refresh_at = LEAST(t.refresh_at, GREATEST(t.not_before, now() + random() * ${withinSeconds}::float8 * interval '1 second'))
    FROM ${rowsOf(companies)}
    WHERE t.environment = asked.environment AND t.company_id = asked.company_id AND t.put_offs > 0 AND t.transient_failures > 0
      AND (t.lease_until IS NULL OR t.lease_until <= now())`;
}

/** A response that granted nothing, as it is stored for people to see. */
export interface RefusingAnswer {
  readonly status?: number | undefined;
  /** Matches [a-z_]{1,40}. */
  readonly error?: string | undefined;
}

/** All tokens that expired in quiet hours are refreshed within this time after them, thousands within a minute. */
const AFTER_QUIET_HOURS_MINUTES = 5;

/** SQL: the refresh of a row `t` of muster.tokens waits for the end of quiet hours, or did so a moment ago: its token may have expired. */
const WAITED_FOR_QUIET_HOURS = Prisma.sql`COALESCE(t.quiet_until > now() - ${AFTER_QUIET_HOURS_MINUTES}::int * interval '1 minute', FALSE)`;

/** SQL: the refresh of a row `t` of muster.tokens fails for a reason that a person should know. The first failure does not count: it usually passes. */
export const REFRESH_FAILS = Prisma.sql`(t.transient_failures > 0 AND (t.put_offs > 0 OR t.last_failure = 'service_refused')
  AND (t.transient_failures > 1 OR (t.expires_at <= now() AND NOT ${WAITED_FOR_QUIET_HOURS})))`;

/** A response of the token endpoint that granted nothing, and the number of companies whose last response it was. */
export interface TokenRefusal {
  readonly status: number;
  readonly error: string | null;
  readonly companies: number;
}

const MOST_REFUSALS = 3;

/** The most frequent last responses, for companies of an environment whose refresh fails or that must authorize again because of one. */
export function findTokenRefusals(
  db: Pick<Database, 'prisma'>,
  { environment, mustAuthorize }: { environment: Environment; mustAuthorize: boolean },
): Promise<TokenRefusal[]> {
  const isMeant = mustAuthorize
    ? Prisma.sql`c.reauthorization_reason IN ('token_refused', 'refresh_outcome_unknown')`
    : Prisma.sql`c.reauthorization_reason IS NULL AND ${REFRESH_FAILS}`;
  return readByIndex(
    db,
    (tx) => tx.$queryRaw`
    SELECT t.last_status AS status, t.last_error AS error, count(*)::int AS companies
    FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
    WHERE environment = ${environment} AND t.last_status IS NOT NULL AND ${isMeant}
    GROUP BY t.last_status, t.last_error ORDER BY companies DESC, status, error LIMIT ${MOST_REFUSALS}::int`,
  );
}

/** Tokens of these environments that are due for a refresh, and tokens that expired before theirs, but for quiet hours; without companies that must authorize again. */
export async function countLateTokens(
  db: Pick<Transaction, '$queryRaw'>,
  { environments }: { environments: readonly Environment[] },
): Promise<{ due: number; overdue: number }> {
  const [row] = await db.$queryRaw<[{ due: number; overdue: number }]>`
    SELECT count(*) FILTER (WHERE t.refresh_at <= now())::int AS due, count(*) FILTER (WHERE t.expires_at <= now() AND NOT ${WAITED_FOR_QUIET_HOURS})::int AS overdue
    FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
    WHERE c.reauthorization_reason IS NULL AND environment = ANY(${environments}::text[])`;
  return row;
}
