// `muster doctor` reads this from several tables: work that no worker takes, trouble that lasts, and sizes. It locks nothing. Ages are by the clock
// of the database.
import { Prisma } from '../../generated/prisma/client.js';
import type { Reader } from '../connection/read-only.js';
import { hasActiveRun } from './active-runs.js';

/** Work that no worker takes, links that no customer used, and those ongoing issues that the doctor repeats. */
export type OverdueKind =
  | 'tokens'
  | 'abandoned_runs'
  | 'waiting_runs'
  | 'missed_syncs'
  | 'missed_lists'
  | 'unused_links'
  | 'reauthorization_required'
  | 'never_proved'
  | 'deletions_held';

export interface Overdue {
  readonly what: OverdueKind;
  /** Companies, where it is an issue. */
  readonly count: number;
  /** The age of the oldest. */
  readonly seconds: number;
}

/**
 * Finds overdue work, by indexes. A worker that lives begins a refresh, a nightly sync and a run within seconds of their time, and goes on with the
 * run of a worker that died. A run may wait all night while others are under way. The sweep of
 * the issues cannot tell of work that waits for a worker, since it may be waiting for one, too. list-counts.ts counts lists without a proof.
 */
export async function findOverdue(db: Reader, { environments }: { environments: readonly string[] }): Promise<Overdue[]> {
  const { rows } = await db.query<Overdue>(
    Prisma.sql`SELECT what, sum(amount)::int AS count, extract(epoch FROM now() - min(since))::float8 AS seconds FROM (
       SELECT 'tokens' AS what, 1 AS amount, t.refresh_at AS since
       FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
       WHERE t.refresh_at < now() - interval '15 minutes' AND c.reauthorization_reason IS NULL AND environment = ANY(${environments}::text[])
       UNION ALL SELECT 'abandoned_runs', 1, heartbeat_at FROM muster.runs
       WHERE status = 'running' AND heartbeat_at < now() - interval '5 minutes'
       UNION ALL SELECT 'waiting_runs', 1, r.start_after FROM muster.runs r JOIN muster.connections c USING (environment, company_id)
       WHERE r.status = 'queued' AND r.kind = 'sync' AND NOT c.paused AND r.start_after < now() - interval '15 minutes'
         AND NOT EXISTS (SELECT FROM muster.runs WHERE status = 'running' AND heartbeat_at > now() - interval '1 minute')
       UNION ALL SELECT 'missed_syncs', 1, c.next_sync_at FROM muster.connections c
       WHERE c.status = 'active' AND c.next_sync_at < now() - interval '15 minutes' AND NOT ${hasActiveRun(Prisma.sql`c`, Prisma.sql`r.trigger = 'scheduled'`)}
       UNION ALL SELECT 'missed_lists', 1, s.next_sync_at FROM muster.scheduled_lists s JOIN muster.connections c USING (environment, company_id)
       WHERE c.status = 'active' AND s.next_sync_at < now() - interval '15 minutes' AND NOT ${hasActiveRun(Prisma.sql`s`)}
       UNION ALL SELECT 'unused_links', 1, expires_at FROM muster.connect_links
       WHERE completed_at IS NULL AND expires_at < now() AND expires_at > now() - interval '14 days'
       UNION ALL SELECT cause, companies, first_seen_at FROM muster.issues
       WHERE status = 'ongoing' AND (cause IN ('reauthorization_required', 'never_proved')
         OR cause = 'deletions_held' AND first_seen_at < now() - interval '3 days')) overdue
     GROUP BY what`,
  );
  return rows;
}

/** Lists of each resource that the database knows, whatever the catalogue has. */
export async function countListsByResource(db: Reader): Promise<{ readonly resource: string; readonly lists: number }[]> {
  const { rows } = await db.query<{ resource: string; lists: number }>(
    'SELECT resource, count(*)::int AS lists FROM muster.lists GROUP BY resource ORDER BY resource',
  );
  return rows;
}

/** The size of the change feed on disk with its indexes, and the age of its oldest change. */
export async function measureFeed(db: Reader): Promise<{ readonly bytes: number; readonly oldestSeconds: number | null }> {
  const { rows } = await db.query<{ bytes: number; oldestSeconds: number | null }>(
    `SELECT (SELECT sum(pg_total_relation_size(name::regclass))::float8
             FROM unnest(ARRAY['muster.change_batches', 'muster.changes', 'muster.change_numbers']) AS name) AS bytes,
       (SELECT extract(epoch FROM now() - changed_at)::float8 FROM muster.change_batches
        WHERE first_seq IS NOT NULL ORDER BY first_seq LIMIT 1) AS "oldestSeconds"`,
  );
  return rows[0]!;
}
