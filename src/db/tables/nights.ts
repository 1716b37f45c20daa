// muster.nights: how each night went, one row per environment. Only the sweep for nights writes it, a night per statement, without
// locks: two sweeps that count at the same time count the same night. A settled night is not counted again.
import { ENVIRONMENTS, type Environment } from '../../core/company.js';
import { type Night, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { inTransaction } from '../connection/transaction.js';
import { BY_INDEX, readByIndex } from '../statements/by-index.js';
import { UNAVAILABLE } from './lists.js';
import { seqBefore } from './run-list.js';

/** How long nights are kept, and how far back they are shown. */
export const MOST_NIGHTS = 90;

/** When a night began: `night` is the day, as 2026-11-24. */
export interface NightStart {
  readonly night: string;
  readonly beganAt: Date;
}

/** The newest night that was counted. */
export async function findNewestNight(db: Pick<Database, 'prisma'>): Promise<NightStart | undefined> {
  const [row] = await db.prisma.$queryRaw<NightStart[]>`
    SELECT night::text, began_at AS "beganAt" FROM muster.nights ORDER BY muster.nights.night DESC LIMIT 1`;
  return row;
}

/** Nights to count again, oldest first, with the start of the next one; null for the newest. */
export function findOpenNights(db: Pick<Database, 'prisma'>): Promise<(NightStart & { readonly endedAt: Date | null })[]> {
  return db.prisma.$queryRaw`
    SELECT n.night::text, min(began_at) AS "beganAt", (SELECT min(m.began_at) FROM muster.nights m WHERE m.night > n.night) AS "endedAt"
    FROM muster.nights n GROUP BY n.night HAVING NOT bool_and(settled) ORDER BY n.night`;
}

/** When the oldest run younger than this many days was requested. */
export async function findFirstRunTime(
  db: Pick<Database, 'prisma'>,
  { days }: { readonly days: number },
): Promise<Date | undefined> {
  const [row] = await db.prisma.$queryRaw<{ at: Date }[]>`
    SELECT created_at AS at FROM muster.runs WHERE created_at > now() - ${days}::int * interval '1 day' ORDER BY created_at LIMIT 1`;
  return row?.at;
}

/** The walks of a row of `run`, by a look-up (docs/internals/planner.md). */
const WALKS_OF_RUN = Prisma.sql`(SELECT * FROM muster.walks WHERE run_id = run.id OFFSET 0)`;

export interface NightToCount extends NightStart {
  /** When the next night began; null before that. */
  readonly endedAt: Date | null;
  /** When it begins at the latest: whatever is due before belongs to this night. */
  readonly endsAt: Date;
  /** The lists of a company that are walked every night. Where there are none, the night has whatever list was walked in it. */
  readonly resources: readonly string[];
}

/**
 * Counts the night again. Its runs are those requested between its start and the start of the next one: nightly runs are counted by their end, and
 * all of them by the outcome of the lists of the night. A list proved once is verified, by any run but those by the schedules of lists, which walk their
 * own lists however the night goes; changes of the mirror are those of all runs. Syncs that are due without a run count as well.
 * The night is settled once its runs have ended, including runs of transactions that began before the next night; a day later at the latest, since the
 * run of a paused company may wait forever.
 */
export async function countNightAnew(
  db: Pick<Database, 'prisma'>,
  { night, beganAt, endedAt: until, endsAt, resources }: NightToCount,
) {
  await inTransaction(db, async (tx) => {
    await tx.$queryRaw`SELECT ${BY_INDEX}`;
    await tx.$executeRaw`
      WITH run AS MATERIALIZED (
        SELECT id, environment, trigger, status, started_at, finished_at FROM muster.runs
        WHERE kind = 'sync' AND created_at >= ${beganAt}::timestamptz AND created_at < COALESCE(${until}::timestamptz, 'infinity')
      ), list AS (
        SELECT w.environment, w.company_id, w.resource, of_night, bool_or(w.verified) AS verified, bool_or(w.status = 'succeeded') AS is_read,
          sum(w.inserted) AS inserted, sum(w.updated) AS updated, sum(w.deleted) AS deleted
        FROM run CROSS JOIN LATERAL ${WALKS_OF_RUN} w,
          LATERAL (SELECT ${resources.length === 0}::boolean OR run.trigger <> 'scheduled' AND w.resource = ANY(${resources}::text[]) AS of_night) counted
        GROUP BY w.environment, w.company_id, w.resource, of_night
        HAVING NOT bool_and(w.unverified_reason IS NOT DISTINCT FROM ${UNAVAILABLE})
      ), lists AS (
        SELECT environment, count(*) FILTER (WHERE of_night) AS lists, count(*) FILTER (WHERE of_night AND verified) AS verified,
          count(*) FILTER (WHERE of_night AND is_read AND NOT verified) AS unverified, sum(inserted) AS inserted, sum(updated) AS updated, sum(deleted) AS deleted
        FROM list GROUP BY environment
      ), runs AS (
        SELECT environment, count(*) AS made, count(finished_at) AS finished, count(*) FILTER (WHERE status = 'succeeded') AS succeeded,
          count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
          min(started_at) AS started_at, max(finished_at) AS finished_at
        FROM run WHERE trigger = 'nightly' GROUP BY environment
      ), coming AS (
        SELECT environment, count(*) AS due, count(*) FILTER (WHERE known IS NULL) AS unread
        FROM muster.connections LEFT JOIN (SELECT DISTINCT environment, company_id, TRUE AS known FROM list WHERE of_night) k USING (environment, company_id)
        WHERE status = 'active' AND next_sync_at < ${endsAt}::timestamptz AND ${until}::timestamptz IS NULL GROUP BY environment
      ), active AS (
        SELECT DISTINCT environment FROM run WHERE status IN ('queued', 'running')
      )
      INSERT INTO muster.nights (night, environment, began_at, due, finished, succeeded, failed, cancelled, lists, verified, unverified,
        inserted, updated, deleted, started_at, finished_at, settled)
      SELECT ${night}::date, e.name, ${beganAt}::timestamptz, COALESCE(r.made, 0) + COALESCE(c.due, 0), COALESCE(r.finished, 0),
        COALESCE(r.succeeded, 0), COALESCE(r.failed, 0), COALESCE(r.cancelled, 0),
        COALESCE(l.lists, 0) + COALESCE(c.unread, 0) * ${resources.length}::int, COALESCE(l.verified, 0), COALESCE(l.unverified, 0),
        COALESCE(l.inserted, 0), COALESCE(l.updated, 0), COALESCE(l.deleted, 0), r.started_at,
        CASE WHEN r.finished = r.made AND c.due IS NULL THEN r.finished_at END,
        COALESCE(${until}::timestamptz < now() - CASE WHEN a.environment IS NULL THEN interval '5 minutes' ELSE interval '1 day' END, FALSE)
      FROM unnest(${[...ENVIRONMENTS]}::text[]) AS e(name) LEFT JOIN runs r ON r.environment = e.name
      LEFT JOIN lists l ON l.environment = e.name LEFT JOIN coming c ON c.environment = e.name LEFT JOIN active a ON a.environment = e.name
      ON CONFLICT (night, environment) DO UPDATE SET due = EXCLUDED.due, finished = EXCLUDED.finished, succeeded = EXCLUDED.succeeded,
        failed = EXCLUDED.failed, cancelled = EXCLUDED.cancelled, lists = EXCLUDED.lists, verified = EXCLUDED.verified,
        unverified = EXCLUDED.unverified, inserted = EXCLUDED.inserted, updated = EXCLUDED.updated, deleted = EXCLUDED.deleted,
        started_at = EXCLUDED.started_at, finished_at = EXCLUDED.finished_at, settled = EXCLUDED.settled`;
  });
}

/** A night of one environment or of both together. */
export interface NightCounts extends Omit<Night, 'night' | 'environment' | 'settled' | 'inserted' | 'updated' | 'deleted'> {
  readonly night: string;
  /** When the next one began; null for the newest. */
  readonly endedAt: Date | null;
  readonly inserted: number;
  readonly updated: number;
  readonly deleted: number;
}

/** The nights that began since then, newest first. */
export function listNights(
  db: Pick<Database, 'prisma'>,
  { since, environment = null }: { readonly since: Date; readonly environment?: Environment | null | undefined },
): Promise<NightCounts[]> {
  return db.prisma.$queryRaw`
    SELECT n.night::text, min(began_at) AS "beganAt", lead(min(began_at)) OVER (ORDER BY n.night) AS "endedAt", sum(due)::int AS due,
      sum(finished)::int AS finished, sum(succeeded)::int AS succeeded, sum(failed)::int AS failed, sum(cancelled)::int AS cancelled,
      sum(lists)::int AS lists, sum(verified)::int AS verified, sum(unverified)::int AS unverified, sum(inserted)::float8 AS inserted,
      sum(updated)::float8 AS updated, sum(deleted)::float8 AS deleted, min(started_at) AS "startedAt",
      CASE WHEN bool_and(finished_at IS NOT NULL OR due = 0) THEN max(finished_at) END AS "finishedAt"
    FROM muster.nights n
    WHERE began_at >= ${since}::timestamptz AND (${environment}::text IS NULL OR environment = ${environment})
    GROUP BY n.night ORDER BY n.night DESC`;
}

/** Removes nights that are no longer shown. Returns how many rows. */
export function removeOldNights(db: Pick<Database, 'prisma'>, { limit }: { readonly limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.nights WHERE (night, environment) IN (
      SELECT night, environment FROM muster.nights WHERE began_at < now() - ${MOST_NIGHTS + 1}::int * interval '1 day' LIMIT ${limit}::int)`;
}

/** A list in one night. */
export interface ListNight {
  readonly resource: string;
  readonly night: string;
  /** Living rows after the last walk of the night that read it to its end; null without such a walk, or if an older version made it. */
  readonly records: number | null;
  readonly verified: boolean;
  readonly inserted: number;
  readonly updated: number;
  readonly deleted: number;
}

/**
 * The effects of a company's runs on these lists, by the night in which they were requested: by list name, newest night first. Nights without a walk
 * of the list are left out. Reads only the company's runs since then.
 */
export function readListNights(
  db: Pick<Database, 'prisma'>,
  {
    environment,
    companyId,
    resources,
    since,
  }: {
    readonly environment: Environment;
    readonly companyId: string;
    readonly resources: readonly string[];
    readonly since: Date;
  },
): Promise<ListNight[]> {
  return readByIndex(db, (tx) =>
    tx.$queryRaw<ListNight[]>(Prisma.sql`
      WITH night AS MATERIALIZED (
        SELECT night, began_at, COALESCE(lead(began_at) OVER (ORDER BY night), 'infinity') AS ended_at FROM muster.nights
        WHERE environment = ${environment} AND began_at >= ${since}::timestamptz
      ), run AS MATERIALIZED (
        SELECT id, seq, created_at FROM muster.runs
        WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND kind = 'sync' AND seq > ${seqBefore(since)}
      )
      SELECT w.resource, n.night::text, (array_agg(w.records ORDER BY run.seq DESC) FILTER (WHERE w.records IS NOT NULL))[1] AS records,
        bool_or(w.verified) AS verified, sum(w.inserted)::float8 AS inserted, sum(w.updated)::float8 AS updated, sum(w.deleted)::float8 AS deleted
      FROM run JOIN night n ON run.created_at >= n.began_at AND run.created_at < n.ended_at CROSS JOIN LATERAL ${WALKS_OF_RUN} w
      WHERE w.resource = ANY(${resources}::text[])
      GROUP BY w.resource, n.night ORDER BY w.resource, n.night DESC`),
  );
}
