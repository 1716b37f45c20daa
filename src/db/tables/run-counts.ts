// muster.runs, counted for metrics and the overview; runs.ts has everything else about the table.
import type { Environment } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import { IS_PAUSED, WAITS_FOR_SYNC } from './active-runs.js';
import { ofLastSync } from './last-syncs.js';
import type { EndStatus } from './walks.js';

/** Restricts to one environment, or to none. */
export interface InEnvironment {
  readonly environment?: Environment | null | undefined;
}

/** Runs that have not ended. */
export function countActiveRuns(
  db: Pick<Transaction, '$queryRaw'>,
  { environment = null }: InEnvironment = {},
): Promise<{ status: 'queued' | 'running'; count: number }[]> {
  return db.$queryRaw`
    SELECT s.status, count(r.id)::int AS count FROM (VALUES ('queued'), ('running')) AS s(status)
    LEFT JOIN muster.runs r ON r.status = s.status AND r.status IN ('queued', 'running')
      AND (${environment}::text IS NULL OR r.environment = ${environment})
    GROUP BY s.status`;
}

/**
 * For how many seconds the first run in line has been due, or null. Runs of paused companies are not in line, and runs that wait to retry
 * not yet.
 */
export async function measureWait(
  db: Pick<Transaction, '$queryRaw'>,
  { environment = null }: InEnvironment = {},
): Promise<number | null> {
  const [row] = await db.$queryRaw<{ seconds: number }[]>`
    SELECT floor(extract(epoch FROM now() - start_after))::int AS seconds FROM muster.runs
    WHERE status = 'queued' AND start_after <= now() AND NOT ${IS_PAUSED} AND NOT ${WAITS_FOR_SYNC}
      AND (${environment}::text IS NULL OR environment = ${environment})
    ORDER BY seq LIMIT 1`;
  return row?.seconds ?? null;
}

/** Active companies by the status of their last sync that ended. */
export function countLastRuns(
  db: Pick<Transaction, '$queryRaw'>,
  { environment = null }: InEnvironment = {},
): Promise<{ status: EndStatus; count: number }[]> {
  return db.$queryRaw`
    SELECT status, count(*)::int AS count FROM (
      SELECT ${ofLastSync(Prisma.sql`r.status`, Prisma.sql`AND r.finished_at IS NOT NULL`)} AS status FROM muster.connections c
      WHERE c.status = 'active' AND (${environment}::text IS NULL OR c.environment = ${environment})) last
    WHERE status IS NOT NULL GROUP BY status`;
}

/** How the nightly runs made since a night began have ended; `finished` includes cancelled ones. */
export async function countNight(
  db: Pick<Transaction, '$queryRaw'>,
  { since, environment = null }: InEnvironment & { readonly since: Date },
): Promise<{ finished: number; succeeded: number; failed: number }> {
  const [row] = await db.$queryRaw<{ finished: number; succeeded: number; failed: number }[]>`
    SELECT count(finished_at)::int AS finished, count(*) FILTER (WHERE status = 'succeeded')::int AS succeeded,
      count(*) FILTER (WHERE status = 'failed')::int AS failed
    FROM muster.runs
    WHERE trigger = 'nightly' AND created_at >= ${since}::timestamptz AND (${environment}::text IS NULL OR environment = ${environment})`;
  return row!;
}
