// muster.night_exports: the exports to make after a night, and their outcomes. A sweep makes the rows; the one worker that has claimed a row
// writes it, one statement at a time; nothing else is locked. All times are the database's.
//
//   due     -> claimed   a worker moves the next attempt on for as long as it lives; killed, the row is due again
//   claimed -> finished  the file bears its name
//   claimed -> due       the attempt failed, and the next one is later; there are MOST_ATTEMPTS
//
// Only exports of the newest night are due: after the next night the mirror no longer holds what an earlier one left.
import type { Environment } from '../../core/company.js';
import type { ErrorView } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { inTransaction, type Transaction } from '../connection/transaction.js';
import { BY_INDEX } from '../statements/by-index.js';

/** `night` is the day, as 2026-11-24. */
export interface NightExportKey {
  readonly night: string;
  readonly environment: Environment;
  readonly resource: string;
}

/** `attempts` names the attempt: one that was overtaken writes nothing. */
export interface NightExportClaim extends NightExportKey {
  readonly attempts: number;
}

/** With the delays between them some eight hours. */
export const MOST_ATTEMPTS = 20;

/** A killed worker is noticed after this time. */
const CLAIM_SECONDS = 20;

const isOf = ({ night, environment, resource }: NightExportKey) =>
  Prisma.sql`night = ${night}::date AND environment = ${environment} AND resource = ${resource}`;

const isClaimed = (claim: NightExportClaim) =>
  Prisma.sql`${isOf(claim)} AND attempts = ${claim.attempts}::int AND finished_at IS NULL`;

/**
 * Adds the exports of each environment's newest night that is over. A night is over once no active company has a nightly run before
 * it or under way, and at the latest when the next night has begun. Paused companies, and companies that must authorize again, are not waited for: they
 * may stay so forever. A night in which no company was due leaves nothing to export; but where every list has a schedule of its own (`hasNightly` false), a
 * night is over when the next one has begun, if any list was walked in it.
 */
export async function addNightExports(
  db: Pick<Database, 'prisma'>,
  {
    resources,
    endsAt,
    hasNightly = true,
  }: { readonly resources: readonly string[]; readonly endsAt: Date; readonly hasNightly?: boolean },
): Promise<void> {
  await inTransaction(db, async (tx) => {
    await tx.$queryRaw`SELECT ${BY_INDEX}`;
    await tx.$executeRaw`
    INSERT INTO muster.night_exports (night, environment, resource)
    SELECT over.night, over.environment, asked.resource FROM (
      SELECT DISTINCT ON (environment) night, environment FROM (
        SELECT night, environment, due, lists, lead(began_at) OVER (PARTITION BY environment ORDER BY night) AS ended_at FROM muster.nights
      ) n
      WHERE (due > 0 OR NOT ${hasNightly}::boolean AND lists > 0 AND ended_at IS NOT NULL) AND (ended_at IS NOT NULL OR NOT (
        EXISTS (SELECT FROM muster.connections c
          WHERE c.environment = n.environment AND c.status = 'active' AND c.next_sync_at < ${endsAt}::timestamptz)
        OR EXISTS (SELECT FROM muster.runs r JOIN muster.connections c USING (environment, company_id)
          WHERE r.status IN ('queued', 'running') AND r.environment = n.environment AND r.trigger = 'nightly' AND c.status = 'active')))
      ORDER BY environment, night DESC
    ) over CROSS JOIN unnest(${[...resources]}::text[]) AS asked(resource)
    ON CONFLICT DO NOTHING`;
  });
}

/** The one that is due longest comes first. */
export function findDueNightExports(
  db: Pick<Database, 'prisma'>,
  { resources, limit }: { readonly resources: readonly string[]; readonly limit: number },
): Promise<NightExportClaim[]> {
  return db.prisma.$queryRaw`
    SELECT night::text, environment, resource, attempts FROM muster.night_exports e
    WHERE ${IS_OPEN} AND next_attempt_at <= now() AND resource = ANY(${[...resources]}::text[])
    ORDER BY next_attempt_at, environment, resource LIMIT ${limit}::int`;
}

const IS_OPEN = Prisma.sql`finished_at IS NULL AND attempts < ${MOST_ATTEMPTS}::int AND NOT EXISTS (
  SELECT FROM muster.night_exports later
  WHERE later.environment = e.environment AND later.resource = e.resource AND later.night > e.night)`;

/** Undefined if it is not due any more, or another worker has it. */
export async function claimNightExport(db: Pick<Database, 'prisma'>, key: NightExportKey): Promise<NightExportClaim | undefined> {
  const [claimed] = await db.prisma.$queryRaw<NightExportClaim[]>`
    UPDATE muster.night_exports e SET attempts = attempts + 1, next_attempt_at = now() + ${CLAIM_SECONDS}::int * interval '1 second'
    WHERE ${isOf(key)} AND ${IS_OPEN} AND next_attempt_at <= now() RETURNING night::text, environment, resource, attempts`;
  return claimed;
}

/** Returns whether the claim still holds. */
export async function renewNightExport(db: Pick<Database, 'prisma'>, claim: NightExportClaim): Promise<boolean> {
  const renewed = await db.prisma.$executeRaw`
    UPDATE muster.night_exports SET next_attempt_at = now() + ${CLAIM_SECONDS}::int * interval '1 second' WHERE ${isClaimed(claim)}`;
  return renewed === 1;
}

export async function finishNightExport(
  db: Pick<Database, 'prisma'>,
  claim: NightExportClaim,
  { output, rows, seq }: { readonly output: string; readonly rows: number; readonly seq: number },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.night_exports SET finished_at = now(), last_error = NULL, output = ${output}, rows = ${rows}::bigint, seq = ${seq}::bigint
    WHERE ${isClaimed(claim)}`;
}

/** The number of the feed in the newest earlier export of the resource, in decimal; undefined where there is none. */
export async function seqOfNightBefore(
  db: Pick<Database, 'prisma'>,
  { night, environment, resource }: NightExportKey,
): Promise<string | undefined> {
  const [before] = await db.prisma.$queryRaw<{ seq: string }[]>`
    SELECT seq::text FROM muster.night_exports
    WHERE environment = ${environment} AND resource = ${resource} AND night < ${night}::date AND finished_at IS NOT NULL AND seq IS NOT NULL
    ORDER BY night DESC LIMIT 1`;
  return before?.seq;
}

export async function failNightExport(
  db: Pick<Database, 'prisma'>,
  claim: NightExportClaim,
  { error, delaySeconds }: { readonly error: ErrorView; readonly delaySeconds: number },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.night_exports
    SET last_error = ${JSON.stringify(error)}::jsonb, next_attempt_at = now() + ${delaySeconds}::float8 * interval '1 second'
    WHERE ${isClaimed(claim)}`;
}

/** Ends an attempt that was called off: it does not count. */
export async function releaseNightExport(db: Pick<Database, 'prisma'>, claim: NightExportClaim): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.night_exports SET attempts = attempts - 1, next_attempt_at = now() WHERE ${isClaimed(claim)}`;
}

/** Fails exports with more attempts than this that began and never ended: their worker is killed every time. */
const MANY_UNENDED = 2;

/** One row for each company whose data is not exported, of the newest night that was tried: environment, resource, company_id. */
export function failedNightExports(resources: readonly string[]): Prisma.Sql {
  return Prisma.sql`
    SELECT e.environment, e.resource, c.company_id FROM (
      SELECT DISTINCT ON (environment, resource) * FROM muster.night_exports
      WHERE attempts > 0 AND resource = ANY(${[...resources]}::text[]) ORDER BY environment, resource, night DESC
    ) e JOIN muster.connections c USING (environment)
    WHERE e.finished_at IS NULL AND (e.last_error IS NOT NULL OR e.attempts > ${MANY_UNENDED}::int)`;
}

/** The exports of the newest night that has any. */
export interface LastExport {
  readonly night: string;
  readonly written: number;
  readonly waiting: number;
  readonly failed: number;
  /** When the last of them was written; null until all are written. */
  readonly finishedAt: Date | null;
  /** The last failure, in words for people. */
  readonly problem: string | null;
}

/** Restricts to one environment, or to none. */
export async function findLastExport(
  db: Pick<Transaction, '$queryRaw'>,
  { environment = null }: { readonly environment?: Environment | null | undefined } = {},
): Promise<LastExport | undefined> {
  const [last] = await db.$queryRaw<LastExport[]>`
    SELECT night::text, count(finished_at)::int AS written,
      count(*) FILTER (WHERE finished_at IS NULL AND last_error IS NULL)::int AS waiting,
      count(*) FILTER (WHERE finished_at IS NULL AND last_error IS NOT NULL)::int AS failed,
      CASE WHEN bool_and(finished_at IS NOT NULL) THEN max(finished_at) END AS "finishedAt",
      max(last_error ->> 'message') FILTER (WHERE finished_at IS NULL) AS problem
    FROM muster.night_exports e
    WHERE (${environment}::text IS NULL OR environment = ${environment})
    GROUP BY e.night ORDER BY e.night DESC LIMIT 1`;
  return last;
}
