// The schema log counts the keys in records by their place, and the kinds of their values. Objects are looked into as deep as they are flattened, and so are
// the elements of arrays, and of arrays inside these. Objects that are kept whole are not looked into.
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import { type ColumnType, type FlattenLevels, type Kind, MOST_KEYS } from './schema-columns.js';

/** How often a kind of value was seen under a key of a record, or of an element of an array. */
export interface Sighting {
  readonly resource: string;
  /** The array in the record, if the key is one of its elements. */
  readonly arrayPath: readonly string[] | null;
  /** The array in an element of that array, if the key is one of its elements. */
  readonly innerPath: readonly string[] | null;
  /** The view of the key; null for an array that the log lacks. */
  readonly view: string | null;
  readonly path: readonly string[];
  readonly kind: Kind;
  readonly count: number;
  readonly isKnown: boolean;
  /** The place of the key among the known ones, or among those that the log lacks: the log takes the first of these. */
  readonly rank: number;
  /** How many keys that the log lacks are in the same object, sighted or not. */
  readonly siblings: number;
  readonly environment: string;
  readonly runId: string | null;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
}

/** Changes that one transaction counts at most, except in a larger batch: their members must not take much memory. */
const COUNTED_AT_ONCE = { batches: 100, changes: 4_000, bytes: 32 * 1024 * 1024 };

/** New keys of one object that come before the new keys of deeper objects. A map must not take the room of all others. */
const KEYS_AT_FIRST = 100;

/** Bytes of the names in a new path at most: an index entry has room for two paths and the name of a list. Members with longer names are in `_rest`. */
const LONGEST_PATH = 1_000;

/** A part of the feed: the changes after `after`, up to and including `through`. */
export interface FeedSpan {
  readonly after: bigint;
  readonly through: bigint;
}

/** The next numbered part of the feed; undefined if there is none. */
export async function nextSpan(tx: Transaction, { after }: { after: bigint }): Promise<FeedSpan | undefined> {
  const { batches, changes, bytes } = COUNTED_AT_ONCE;
  const [row] = await tx.$queryRaw<{ through: bigint | null }[]>`
    SELECT max(first_seq + size - 1) AS through FROM (
      SELECT first_seq, size, sum(size) OVER (ORDER BY first_seq) - size AS before, sum(bytes) OVER (ORDER BY first_seq) - bytes AS bytes_before
      FROM (SELECT first_seq, size, COALESCE((SELECT sum(length) FROM unnest(lengths) AS length), 0) AS bytes
            FROM muster.change_batches WHERE first_seq > ${after} ORDER BY first_seq LIMIT ${batches}::int) b
    ) counted WHERE before < ${changes}::int AND bytes_before < ${bytes}::int`;
  return row!.through === null ? undefined : { after, through: row!.through };
}

/** SQL: reads the records of a span as they were changed to. Texts are unpacked once per batch. */
function recordsOf({ after, through }: FeedSpan): Prisma.Sql {
  return Prisma.sql`
    batch AS MATERIALIZED (
      SELECT id, resource, environment, company_id, run_id, changed_at, texts_from, starts, lengths, substr(texts, 1) AS texts
      FROM muster.change_batches WHERE first_seq > ${after} AND first_seq <= ${through}
    ), record AS MATERIALIZED (
      SELECT b.resource, b.environment, b.company_id, b.run_id, b.changed_at, c.data
      FROM batch b JOIN muster.changes c ON c.batch_id = b.id WHERE c.op <> 'delete' AND jsonb_typeof(c.data) = 'object'
      UNION ALL
      SELECT b.resource, b.environment, b.company_id, b.run_id, b.changed_at, text.data
      FROM batch b CROSS JOIN LATERAL unnest(b.starts, b.lengths) AS w(start, length)
      CROSS JOIN LATERAL (SELECT convert_from(substr(b.texts, w.start - b.texts_from + 1, w.length), 'UTF8')::jsonb AS data OFFSET 0) text
      WHERE b.texts IS NOT NULL AND jsonb_typeof(text.data) = 'object'
    )`;
}

/**
 * SQL: counts what `record` (resource, environment, run_id, changed_at, data) holds, by key and kind. Returns one more new key than the log has room for.
 *
 * Objects are looked into as deep as the deepest column of the resource, so that existing columns are counted even where fewer levels are flattened
 * now; new keys come only from flattened ones.
 */
export function sightingsIn(levels: FlattenLevels): Prisma.Sql {
  const flattened = Prisma.sql`COALESCE((${JSON.stringify(levels)}::jsonb ->> resource)::int, 1)`;
  const isLate = Prisma.sql`nth > ${KEYS_AT_FIRST}::int`;
  const lengths = ['path', 'array_path', 'inner_path'].map((path) => `COALESCE(octet_length(array_to_string(${path}, '')), 0)`);
  const isShort = Prisma.sql`greatest(${Prisma.raw(lengths.join(', '))}) <= ${LONGEST_PATH}::int`;
  return Prisma.sql`
  SELECT * FROM (
    SELECT resource, array_path AS "arrayPath", inner_path AS "innerPath", view, path, kind, count, "firstSeenAt", "lastSeenAt", environment, "runId", is_known AS "isKnown",
      COALESCE(max(nth) FILTER (WHERE NOT is_known) OVER object, 0) AS siblings,
      dense_rank() OVER (PARTITION BY resource, is_known
        ORDER BY ${isLate}, CASE WHEN ${isLate} THEN cardinality(path) END, first, array_path, inner_path, path)::int AS rank
    FROM (
      SELECT *, min("firstSeenAt") OVER (PARTITION BY resource, array_path, inner_path, path) AS first,
        dense_rank() OVER (PARTITION BY resource, array_path, inner_path, trim_array(path, 1), is_known ORDER BY path)::int AS nth
      FROM (
        SELECT m.*, place.view, EXISTS (SELECT FROM muster.schema_columns c WHERE c.resource = place.view AND c.path = m.path) AS is_known
        FROM (
          SELECT resource, array_path, inner_path, path, kind, count(*)::int AS count, min(changed_at) AS "firstSeenAt", max(changed_at) AS "lastSeenAt",
            min(environment) AS environment, min(run_id::text) AS "runId", bool_and(only_known) AS only_known
          FROM (${membersOf(flattened)}) each GROUP BY resource, array_path, inner_path, path, kind) m
        LEFT JOIN muster.schema_arrays a ON a.resource = m.resource AND a.path = m.array_path AND a.inner_path IS NOT DISTINCT FROM m.inner_path
        CROSS JOIN LATERAL (SELECT CASE WHEN m.array_path IS NULL THEN m.resource ELSE a.view END AS view) place
      ) known WHERE is_known OR NOT only_known AND cardinality(path) <= ${flattened} + 1 AND ${isShort}
    ) placed WINDOW object AS (PARTITION BY resource, array_path, inner_path, trim_array(path, 1))
  ) seen WHERE "isKnown" OR rank <= ${MOST_KEYS + 1}::int`;
}

/** SQL: the members of records, of the objects in them, and of the elements of arrays. */
function membersOf(flattened: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`
    WITH RECURSIVE level AS MATERIALIZED (
      SELECT resource, greatest(${flattened}, (
        SELECT max(cardinality(c.path)) - 1 FROM muster.schema_columns c WHERE c.list = known.resource AND c.position IS NOT NULL)) AS levels
      FROM (SELECT DISTINCT resource FROM record) known
    ), whole AS MATERIALIZED (
      SELECT c.list AS resource, a.path AS array_path, a.inner_path, c.path, EXISTS (
        SELECT FROM muster.schema_columns d WHERE d.resource = c.resource AND d.position IS NOT NULL
          AND cardinality(d.path) > cardinality(c.path) AND d.path[1:cardinality(c.path)] = c.path) AS has_columns
      FROM muster.schema_columns c LEFT JOIN muster.schema_arrays a ON a.view = c.resource WHERE c.is_kept_whole
    ), converting AS MATERIALIZED (
      SELECT c.list AS resource, a.path AS array_path, a.inner_path, c.path, c.type
      FROM muster.schema_columns c LEFT JOIN muster.schema_arrays a ON a.view = c.resource WHERE c.converts
    ), container AS (
      SELECT r.resource, r.environment, r.run_id, r.changed_at, l.levels, inside.*
      FROM record r JOIN level l USING (resource)
      CROSS JOIN LATERAL (SELECT r.resource, l.levels, NULL::text[] AS array_path, NULL::text[] AS inner_path, '{}'::text[] AS path, r.data AS value, false AS only_known) c
      CROSS JOIN LATERAL (${CONTAINERS} UNION ALL ${ONLY_ELEMENTS}) inside
      UNION ALL
      SELECT c.resource, c.environment, c.run_id, c.changed_at, c.levels, inside.*
      FROM container c CROSS JOIN LATERAL (${CONTAINERS} UNION ALL ${ELEMENTS} UNION ALL ${ONLY_ELEMENTS}) inside
    ), member AS (
      SELECT resource, environment, run_id, changed_at, NULL::text[] AS array_path, NULL::text[] AS inner_path, ARRAY[m.key] AS path, m.value, false AS only_known
      FROM record CROSS JOIN LATERAL jsonb_each(data) m
      UNION ALL
      SELECT resource, environment, run_id, changed_at, array_path, inner_path, path || m.key, m.value, only_known
      FROM container CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(value) WHEN 'object' THEN value ELSE '{}' END) m
    )
    SELECT resource, environment, run_id, changed_at, array_path, inner_path, path, only_known,
      CASE WHEN converting IS NULL THEN muster.kind_of(value) ELSE muster.kind_in(value, converting) END AS kind
    FROM (
      SELECT m.*, CASE WHEN EXISTS (SELECT FROM converting) AND jsonb_typeof(value) = 'string' THEN (
        SELECT c.type FROM converting c WHERE c.resource = m.resource AND c.path = m.path
          AND c.array_path IS NOT DISTINCT FROM m.array_path AND c.inner_path IS NOT DISTINCT FROM m.inner_path) END AS converting
      FROM member m OFFSET 0) typed`;
}

/**
 * SQL: joins the entry of `whole` for the member `m` of the object `c`. Of an object that is kept whole only the keys that have a column are counted: each was given
 * before its object was, and its values of another type need a text column.
 */
const WHOLE = Prisma.sql`LEFT JOIN whole ON whole.resource = c.resource AND whole.path = c.path || m.key
    AND whole.array_path IS NOT DISTINCT FROM c.array_path AND whole.inner_path IS NOT DISTINCT FROM c.inner_path`;

/** SQL: the objects and arrays in the object `c`. An array that is in an array of an array is not looked into. */
const CONTAINERS = Prisma.sql`
  SELECT c.array_path, c.inner_path, c.path || m.key AS path, m.value, c.only_known OR whole.has_columns IS NOT NULL AS only_known
  FROM jsonb_each(CASE jsonb_typeof(c.value) WHEN 'object' THEN c.value ELSE '{}' END) m ${WHOLE}
  WHERE CASE jsonb_typeof(m.value) WHEN 'array' THEN c.inner_path IS NULL
    WHEN 'object' THEN cardinality(c.path) < c.levels AND whole.has_columns IS DISTINCT FROM false ELSE false END`;

/** SQL: the elements of the array `c` that are objects. */
const ELEMENTS = Prisma.sql`
  SELECT COALESCE(c.array_path, c.path), CASE WHEN c.array_path IS NOT NULL THEN c.path END, '{}'::text[], e.value, c.only_known
  FROM jsonb_array_elements(CASE jsonb_typeof(c.value) WHEN 'array' THEN c.value ELSE '[]' END) e WHERE jsonb_typeof(e.value) = 'object'`;

/** SQL: the objects in the object `c` that are in place of an array with a view: each is an element. */
const ONLY_ELEMENTS = Prisma.sql`
  SELECT a.path, a.inner_path, '{}'::text[], m.value, c.only_known OR whole.has_columns IS NOT NULL
  FROM jsonb_each(CASE WHEN c.inner_path IS NULL AND jsonb_typeof(c.value) = 'object' THEN c.value ELSE '{}' END) m
  JOIN muster.schema_arrays a ON a.resource = c.resource AND a.path = COALESCE(c.array_path, c.path || m.key)
    AND a.inner_path IS NOT DISTINCT FROM CASE WHEN c.array_path IS NOT NULL THEN c.path || m.key END
  ${WHOLE} WHERE jsonb_typeof(m.value) = 'object'`;

export function countMembers(tx: Transaction, span: FeedSpan, levels: FlattenLevels): Promise<Sighting[]> {
  return tx.$queryRaw<Sighting[]>`WITH ${recordsOf(span)} ${sightingsIn(levels)}`;
}

/** Values of these kinds under these keys. */
export interface TypeMismatches {
  readonly resource: string;
  /** The array in the record, and that in an element of it, around the key. */
  readonly arrays: readonly (readonly string[])[];
  readonly path: readonly string[];
  readonly kinds: readonly Kind[];
  /** The type of a column that converts; null for another column. */
  readonly converting: ColumnType | null;
}

/** Records the lists with such values in `record` (resource, environment, company_id, data); a removed company has none. */
export function recordTypeMismatches(mismatches: readonly TypeMismatches[]): Prisma.Sql {
  const places = mismatches.map(({ arrays, path, ...rest }) => ({ ...rest, path: jsonPathOf(arrays, path) }));
  return Prisma.sql`
    INSERT INTO muster.schema_misfits (environment, company_id, resource)
    SELECT DISTINCT r.environment, r.company_id, r.resource
    FROM (SELECT resource, path::jsonpath AS path, kinds, converting
      FROM jsonb_to_recordset(${JSON.stringify(places)}::jsonb) AS m(resource text, path text, kinds jsonb, converting text) OFFSET 0) m
    JOIN record r ON r.resource = m.resource
    JOIN muster.connections c ON c.environment = r.environment AND c.company_id = r.company_id
    WHERE EXISTS (SELECT FROM jsonb_path_query(r.data, m.path, '{}', true) v(value) WHERE m.kinds ? muster.kind_in(v.value, m.converting))
    ORDER BY 1, 2, 3
    ON CONFLICT (environment, company_id, resource) DO UPDATE SET last_seen_at = now()`;
}

/** A path of keys only, which searches no array but those given, and there the elements that are objects with the key. */
function jsonPathOf(arrays: readonly (readonly string[])[], path: readonly string[]): string {
  const keys = (each: readonly string[]) => each.map((key) => `.${JSON.stringify(key)}`).join('');
  const steps = arrays.map((array, n) => `${keys(array)}[*] ? (exists(@${keys(arrays[n + 1] ?? path)}))`);
  return `strict $${steps.join('')}${keys(path)}`;
}

export async function recordTypeMismatchesOf(
  tx: Transaction,
  span: FeedSpan,
  mismatches: readonly TypeMismatches[],
): Promise<void> {
  await tx.$executeRaw`WITH ${recordsOf(span)} ${recordTypeMismatches(mismatches)}`;
}
