// What in several tables of Muster is older than it should be, as an examination of an installation sees it. It looks and locks nothing. By
// the clock of the database, as everything that is due.
import type { Reader } from '../connection/read-only.js';

/** How many there are, and how old the oldest is. */
export interface Overdue {
  readonly count: number;
  readonly seconds: number | null;
}

/** Tokens of companies that need not authorize again, in these environments, whose refresh has been due for so long. */
export function findOverdueTokens(
  db: Reader,
  { environments, seconds }: { environments: readonly string[]; seconds: number },
): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(t.refresh_at))::float8 AS seconds
     FROM muster.tokens t JOIN muster.connections c USING (environment, company_id)
     WHERE t.refresh_at < now() - make_interval(secs => $2) AND c.reauthorization_reason IS NULL AND environment = ANY($1::text[])`,
    [environments, seconds],
  );
}

/** Companies that must authorize again, and since when the first of them must. */
export function countReauthorizations(db: Reader): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(status_changed_at))::float8 AS seconds
     FROM muster.connections WHERE status = 'reauthorization_required'`,
    [],
  );
}

/** Lists of active companies, these resources alone, whose last proof is older than so many seconds. */
export function findLateLists(
  db: Reader,
  { resources, seconds }: { resources: readonly string[]; seconds: number },
): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(l.last_verified_at))::float8 AS seconds
     FROM muster.lists l JOIN muster.connections c USING (environment, company_id)
     WHERE c.status = 'active' AND l.resource = ANY($1::text[]) AND l.last_verified_at < now() - make_interval(secs => $2)`,
    [resources, seconds],
  );
}

/**
 * Lists of active companies that were never proved: whose first proof has been due for longer than so many seconds, and those of which the newest walk that
 * read them to their end has rejected all that it received.
 */
export function findUnprovedLists(
  db: Reader,
  { resources, seconds }: { resources: readonly string[]; seconds: number },
): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(GREATEST(c.created_at, l.begun_at)))::float8 AS seconds
     FROM muster.lists l JOIN muster.connections c USING (environment, company_id)
     WHERE c.status = 'active' AND l.resource = ANY($1::text[]) AND l.last_verified_at IS NULL AND l.unavailable_since IS NULL
       AND (GREATEST(c.created_at, l.begun_at) < now() - make_interval(secs => $2) OR l.records = 0 AND (
         SELECT w.rejected > 0 FROM muster.walks w
         WHERE w.environment = l.environment AND w.company_id = l.company_id AND w.resource = l.resource
           AND w.status = 'succeeded' AND w.kind = 'sync' AND w.finished_at >= c.created_at
         ORDER BY w.finished_at DESC LIMIT 1))`,
    [resources, seconds],
  );
}

/** Running runs whose worker has said nothing for so many seconds: nobody has taken them over. */
export function findAbandonedRuns(db: Reader, { seconds }: { seconds: number }): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(heartbeat_at))::float8 AS seconds
     FROM muster.runs WHERE status = 'running' AND heartbeat_at < now() - make_interval(secs => $1)`,
    [seconds],
  );
}

/**
 * Queued runs of companies that are not paused, which may have started for so many seconds while no worker works on any run. In a busy night
 * runs wait for long, and nothing is wrong with it.
 */
export function findForgottenRuns(db: Reader, { seconds }: { seconds: number }): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(r.start_after))::float8 AS seconds
     FROM muster.runs r JOIN muster.connections c USING (environment, company_id)
     WHERE r.status = 'queued' AND r.kind = 'sync' AND NOT c.paused AND r.start_after < now() - make_interval(secs => $1)
       AND NOT EXISTS (SELECT FROM muster.runs WHERE status = 'running' AND heartbeat_at > now() - interval '1 minute')`,
    [seconds],
  );
}

/** Companies whose nightly sync has been due for so many seconds, and was not asked for. */
export function findMissedSyncs(db: Reader, { seconds }: { seconds: number }): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(next_sync_at))::float8 AS seconds
     FROM muster.connections WHERE status = 'active' AND next_sync_at < now() - make_interval(secs => $1)`,
    [seconds],
  );
}

/** Connect links that expired within the last `days` without anybody having connected by them; the age is that of the oldest. */
export function findUnusedLinks(db: Reader, { days }: { days: number }): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(expires_at))::float8 AS seconds FROM muster.connect_links
     WHERE completed_at IS NULL AND expires_at < now() AND expires_at > now() - make_interval(days => $1)`,
    [days],
  );
}

/** Holds that have waited for a decision for so many seconds. */
export function findOldHolds(db: Reader, { seconds }: { seconds: number }): Promise<Overdue> {
  return one(
    db,
    `SELECT count(*)::int AS count, extract(epoch FROM now() - min(opened_at))::float8 AS seconds
     FROM muster.holds WHERE status = 'open' AND opened_at < now() - make_interval(secs => $1)`,
    [seconds],
  );
}

/** Lists of each resource that the database knows, whatever the catalogue has. */
export async function countListsByResource(db: Reader): Promise<{ readonly resource: string; readonly lists: number }[]> {
  const { rows } = await db.query<{ resource: string; lists: number }>(
    'SELECT resource, count(*)::int AS lists FROM muster.lists GROUP BY resource ORDER BY resource',
  );
  return rows;
}

/** What the change feed takes on disk with its indexes, and how old its oldest change is. */
export async function measureFeed(db: Reader): Promise<{ readonly bytes: number; readonly oldestSeconds: number | null }> {
  const { rows } = await db.query<{ bytes: number; oldestSeconds: number | null }>(
    `SELECT (SELECT sum(pg_total_relation_size(name::regclass))::float8
             FROM unnest(ARRAY['muster.change_batches', 'muster.changes', 'muster.change_numbers']) AS name) AS bytes,
       (SELECT extract(epoch FROM now() - changed_at)::float8 FROM muster.change_batches
        WHERE first_seq IS NOT NULL ORDER BY first_seq LIMIT 1) AS "oldestSeconds"`,
  );
  return rows[0]!;
}

async function one(db: Reader, text: string, values: unknown[]): Promise<Overdue> {
  const { rows } = await db.query<Overdue>(text, values);
  return rows[0]!;
}
