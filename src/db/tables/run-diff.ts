// The changes of a list between two of its runs, read from muster.change_batches. Reads only, and locks nothing.
import type { CompanyKey } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../connection/database.js';
import { inPassingTransaction } from '../connection/passing-transaction.js';
import { READ_TIMEOUT } from '../connection/session.js';
import { cursorAt, readCursor } from '../statements/cursor.js';
import { named } from '../statements/named-parameters.js';
import { LargerPage, PAGE_BYTES } from './feed.js';

/** A run, with its place in the feed. */
export interface DiffRun {
  readonly id: string;
  readonly seq: bigint;
  readonly createdAt: Date;
}

export interface DiffQuery extends CompanyKey {
  readonly resource: string;
  readonly run: DiffRun;
  /** An earlier run of the company; undefined for the list before its first run. */
  readonly against: DiffRun | undefined;
  /** The values of each member before and after, as JSON or as its text, which programs that round numbers can carry. */
  readonly values: 'json' | 'text';
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** Bytes for which the reader has memory, at least `PAGE_BYTES`. */
  readonly mostBytes: number;
}

export interface DiffRow {
  readonly id: string;
  readonly op: 'insert' | 'update' | 'delete' | 'restore';
  /** Whether the feed still has both versions; otherwise `changes` is empty. */
  readonly isKept: boolean;
  /** An array as JSON text, with every digit. */
  readonly changes: string;
}

/** The sync before a run that walked a list to its end; undefined if there is none. */
export async function findRunBefore(
  db: Pick<Database, 'prisma'>,
  { environment, companyId, resource, seq }: CompanyKey & { readonly resource: string; readonly seq: bigint },
): Promise<DiffRun | undefined> {
  const [row] = await db.prisma.$queryRaw<DiffRun[]>`
    SELECT r.id, r.seq, r.created_at AS "createdAt" FROM muster.runs r
    WHERE r.environment = ${environment} AND r.company_id = ${companyId}::uuid AND r.seq < ${seq} AND r.kind = 'sync'
      AND (SELECT TRUE FROM muster.walks w WHERE w.run_id = r.id AND w.resource = ${resource} AND w.status = 'succeeded' LIMIT 1)
    ORDER BY r.seq DESC LIMIT 1`;
  return row;
}

/** One snapshot: between two, retention could remove what the first one found. */
const BEGIN = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '15s';
  SET LOCAL statement_timeout = '${READ_TIMEOUT}'; SET LOCAL enable_seqscan = off; SET LOCAL jit = off`;

/**
 * The records that changed between the two runs, by id. A record that changed back is left out, so a page may be short. An approval
 * between the runs (a hold) belongs to the earlier run. Throws `changes_expired` if changes of that time are no longer kept, and
 * `LargerPage`.
 */
export function readDiff(
  db: Pick<Database, 'pool'>,
  { environment, companyId, resource, run, against, values, limit, cursor, mostBytes }: DiffQuery,
): Promise<{ rows: readonly DiffRow[]; nextCursor: string | undefined }> {
  const list = { environment, companyId, resource };
  const after = cursor === undefined ? '' : readCursor(cursor, /^[^]{1,4000}$/);
  return inPassingTransaction(db.pool, BEGIN, async (client) => {
    const { rows: spans } = await client.query<{
      from: string | null;
      until: string | null;
      keptSince: Date | null;
      isWhole: boolean;
    }>(span({ ...list, against: String(against?.seq ?? 0), run: String(run.seq) }));
    const { from, until, keptSince, isWhole } = spans[0]!;
    if (!isWhole && (keptSince === null || keptSince > (against ?? run).createdAt)) throw expired(keptSince);
    if (from === null) return { rows: [], nextCursor: undefined };
    const found: DiffRow[] = [];
    let last = after;
    for (let left = limit, room = PAGE_BYTES; left > 0 && room > 0; ) {
      const portion = Math.min(left, IDS_AT_ONCE);
      const { rows } = await client.query<FoundRow>(diff({ ...list, from, until, last, portion, values, room, mostBytes }));
      if (rows[0]?.isTooLarge) throw new LargerPage(rows[0].bytes);
      found.push(...rows.filter(({ isSame }) => !isSame));
      const { id, found: count = 0, bytes = 0 } = rows.at(-1) ?? {};
      if (count < portion && count === rows.length) return { rows: found, nextCursor: undefined };
      last = id!;
      left -= rows.length;
      room -= bytes;
    }
    return { rows: found, nextCursor: cursorAt(last) };
  });
}

/** Records compared at once: the server keeps both versions and the difference of each in memory. */
const IDS_AT_ONCE = 50;

/**
 * `found`: records of the portion, before it was cut to its bytes. `bytes`: of this row and all rows before it. `isTooLarge`: the reader has no memory for this row,
 * the first one, and its changes are left out.
 */
type FoundRow = DiffRow & {
  readonly isSame: boolean;
  readonly found: number;
  readonly bytes: number;
  readonly isTooLarge: boolean;
};

function expired(keptSince: Date | null): MusterError {
  return new MusterError(
    'changes_expired',
    `Changes of that time are no longer kept (CHANGE_RETENTION_DAYS); the feed begins ${keptSince ? `at ${keptSince.toISOString()}` : 'with the next change'}. Compare runs that are younger.`,
  );
}

type List = 'environment' | 'companyId' | 'resource';

/** The batches of a list are ordered by id. A batch whose run retention has removed is older than any run that exists. */
const span = named<List | 'against' | 'run'>(`
  WITH batch AS MATERIALIZED (
    SELECT b.id, COALESCE(r.seq, 0) AS seq FROM muster.change_batches b LEFT JOIN muster.runs r ON r.id = b.run_id
    WHERE b.environment = :environment AND b.company_id = :companyId::uuid AND b.resource = :resource
  ), feed AS (
    SELECT first_seq, changed_at FROM muster.change_batches WHERE first_seq IS NOT NULL ORDER BY first_seq LIMIT 1
  )
  SELECT (SELECT min(id) FROM batch WHERE seq > :against::bigint)::text AS "from", (SELECT min(id) FROM batch WHERE seq > :run::bigint)::text AS "until",
    (SELECT changed_at FROM feed) AS "keptSince",
    COALESCE((SELECT first_seq FROM feed), (SELECT next_seq FROM muster.change_sequence WHERE "only")) = 1 AS "isWhole"`);

/** The changes of a batch `b`: position, id and op. `of`: a condition on their ids, called ID in it. */
const changesOf = (of: string) => `
  SELECT r.position, r.record_id AS id, r.op FROM muster.changes r WHERE r.batch_id = b.id AND ${of.replaceAll('ID', 'r.record_id')}
  UNION ALL
  SELECT w.n::int - 1, w.id, COALESCE(w.op, 'insert') FROM unnest(b.ids, b.ops) WITH ORDINALITY AS w(id, op, n) WHERE ${of.replaceAll('ID', 'w.id')}`;

/** The record of the change at a place; null if it was erased. */
const dataAt = (batch: string, position: string) => `(
  SELECT CASE WHEN b.ids[${position} + 1] IS NULL THEN (SELECT r.data FROM muster.changes r WHERE r.batch_id = b.id AND r.position = ${position})
    ELSE convert_from(substr(b.texts, b.starts[${position} + 1] - b.texts_from + 1, b.lengths[${position} + 1]), 'UTF8')::jsonb END
  FROM muster.change_batches b WHERE b.id = ${batch})`;

/**
 * Finds the ids of the page first, then the first and last change of each. For ids that begin with an update it finds the version before in the
 * earlier batches of the list. Members are compared by their bytes, like rows of the mirror: 1.5 and 1.50 differ.
 */
const diff = named<List | 'from' | 'until' | 'last' | 'portion' | 'values' | 'room' | 'mostBytes'>(`
  WITH RECURSIVE change AS MATERIALIZED (
    SELECT b.id AS batch, c.position, c.id COLLATE "C" AS id, c.op FROM muster.change_batches b
    CROSS JOIN LATERAL (${changesOf(`ID COLLATE "C" > :last::text`)}) c
    WHERE b.environment = :environment AND b.company_id = :companyId::uuid AND b.resource = :resource AND b.id >= :from::bigint AND (:until::bigint IS NULL OR b.id < :until::bigint)
  ), page AS MATERIALIZED (
    SELECT DISTINCT id FROM change ORDER BY id LIMIT :portion::int
  ), first AS (
    SELECT DISTINCT ON (id) * FROM change JOIN page USING (id) ORDER BY id, batch, position
  ), last AS (
    SELECT DISTINCT ON (id) * FROM change JOIN page USING (id) ORDER BY id, batch DESC, position DESC
  ), before AS (
    SELECT DISTINCT ON (c.id) c.id, b.id AS batch, c.position FROM muster.change_batches b
    CROSS JOIN LATERAL (${changesOf(`ID = ANY(ARRAY(SELECT f.id FROM first f WHERE f.op = 'update'))`)}) c
    WHERE b.environment = :environment AND b.company_id = :companyId::uuid AND b.resource = :resource AND b.id < :from::bigint
    ORDER BY c.id, b.id DESC, c.position DESC
  ), record AS MATERIALIZED (
    SELECT f.id, f.op IN ('update', 'delete') AS was_living, l.op <> 'delete' AS is_living,
      CASE WHEN f.op IN ('insert', 'restore') AND l.op <> 'delete' THEN f.op WHEN l.op = 'delete' THEN 'delete' ELSE 'update' END AS op,
      CASE f.op WHEN 'update' THEN ${dataAt('p.batch', 'p.position')} WHEN 'delete' THEN ${dataAt('f.batch', 'f.position')} END AS before,
      CASE WHEN l.op <> 'delete' THEN ${dataAt('l.batch', 'l.position')} END AS after
    FROM first f JOIN last l ON l.id = f.id LEFT JOIN before p ON p.id = f.id
  ), node AS (
    SELECT id, ARRAY[]::text[] AS path, CASE WHEN was_living THEN before ELSE '{}' END AS before, CASE WHEN is_living THEN after ELSE '{}' END AS after
    FROM record WHERE (NOT was_living OR before IS NOT NULL) AND (NOT is_living OR after IS NOT NULL)
    UNION ALL
    SELECT n.id, n.path || m.name, n.before -> m.name, n.after -> m.name FROM node n CROSS JOIN LATERAL (
      SELECT jsonb_object_keys(n.before) UNION SELECT jsonb_object_keys(n.after)) AS m(name)
    WHERE jsonb_typeof(n.before) = 'object' AND jsonb_typeof(n.after) = 'object' AND record_image_ne(ROW(n.before), ROW(n.after))
  ), member AS (
    SELECT id, jsonb_agg(jsonb_build_object('path', array_to_string(path, '.'))
      || CASE WHEN before IS NULL THEN '{}' ELSE jsonb_build_object('before', CASE :values::text WHEN 'text' THEN to_jsonb(before::text) ELSE before END) END
      || CASE WHEN after IS NULL THEN '{}' ELSE jsonb_build_object('after', CASE :values::text WHEN 'text' THEN to_jsonb(after::text) ELSE after END) END
      ORDER BY path) AS changes
    FROM node
    WHERE record_image_ne(ROW(before), ROW(after))
      AND NOT (jsonb_typeof(before) IS NOT DISTINCT FROM 'object' AND jsonb_typeof(after) IS NOT DISTINCT FROM 'object')
    GROUP BY id
  )
  SELECT id, op, "isKept", "isSame", found, bytes, bytes > :mostBytes::float8 AS "isTooLarge", CASE WHEN bytes <= :mostBytes::float8 THEN changes ELSE '' END AS changes
  FROM (SELECT *, count(*) OVER ()::int AS found, sum(octet_length(changes)) OVER (ORDER BY id)::float8 AS bytes FROM (
  SELECT r.id, r.op, k.is_kept AS "isKept", COALESCE(m.changes, '[]')::text AS changes,
    NOT (r.was_living OR r.is_living) OR (r.was_living AND r.is_living AND k.is_kept AND m.id IS NULL) AS "isSame"
  FROM record r LEFT JOIN member m ON m.id = r.id
  CROSS JOIN LATERAL (SELECT (NOT r.was_living OR r.before IS NOT NULL) AND (NOT r.is_living OR r.after IS NOT NULL) AS is_kept) k
  ) differing) counted
  WHERE bytes <= :room::float8 OR bytes = octet_length(changes) ORDER BY id`);

/** For examining the plans. */
export const DIFF_STATEMENTS = { span, page: diff } as const;
