// muster.schema_columns, schema_resources and schema_log_cursor: the schema log. It holds the keys that the records of a resource have had, and the column of the
// view that each key has. A writer of the log locks the cursor first, so one process at a time writes; no other lock is taken after it.
//
//   unnamed -> column    the type is decided or declared: name, type and position never change again
//   column  -> with text the first value of another type came: a second column was added
//   column  -> with twin every living value has another type, or another type is declared: a further, typed column was added
import { Prisma, type SchemaColumn } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { BY_INDEX } from '../statements/by-index.js';
import { type Page, type PageQuery, pageOf, readCursor } from '../statements/cursor.js';

export const COLUMN_TYPES = ['text', 'boolean', 'numeric', 'date', 'timestamp', 'timestamptz', 'jsonb'] as const;
export type ColumnType = (typeof COLUMN_TYPES)[number];

/** The types whose declared columns also show texts that say the same without loss: `"12.50"` in a numeric column. */
export const CONVERTING_TYPES: readonly ColumnType[] = ['numeric', 'boolean', 'date', 'timestamp'];

/**
 * The kind of a value, as in muster.kind_of: the kinds of JSON, with days and moments told apart from other texts. Days and
 * moments outside the years 1 to 9999 (`…_beyond`) are shown only as texts. `as_declared` is a text of another kind that a column shows because it converts.
 */
export type Kind =
  | 'null'
  | 'boolean'
  | 'number'
  | 'string'
  | 'date'
  | 'date_beyond'
  | 'timestamp'
  | 'timestamp_beyond'
  | 'timestamptz'
  | 'timestamptz_beyond'
  | 'as_declared'
  | 'array'
  | 'object';
export type Kinds = Readonly<Partial<Record<Kind, number>>>;

/** A further column of a key that has a column already. Values of other types are null in it. */
export interface Twin {
  readonly name: string;
  readonly type: ColumnType;
  readonly position: number;
  /** It was declared at some time, and shows texts that say the same as a value of its type. */
  readonly converts?: true;
}

/** Why the mirror had no reason for a twin when it was asked whether all living values are of a kind: one is not, or they are few. */
export interface TwinAnswer {
  /** How many values of the kind were counted then. */
  readonly count: number;
  /** A record with a value of another kind. */
  readonly misfit?: RecordKey;
  /** The values are enough once the lists are known to have no others. */
  readonly waits?: true;
}

export interface RecordKey {
  readonly environment: string;
  readonly companyId: string;
  readonly id: string;
}

/** A key of a resource's records. `values` counts values that are not null. */
export interface KeyRow
  extends Omit<
    SchemaColumn,
    'id' | 'list' | 'type' | 'twins' | 'twinDue' | 'twinAnswers' | 'kinds' | 'values' | 'nulls' | 'misfits'
  > {
  readonly resource: string;
  readonly type: ColumnType | null;
  readonly twins: readonly Twin[];
  readonly twinDue: Kind | null;
  readonly twinAnswers: Readonly<Partial<Record<Kind, TwinAnswer>>>;
  readonly kinds: Kinds;
  readonly values: number;
  readonly nulls: number;
  readonly misfits: number;
}

/** A key that has a column. */
export interface ColumnRow extends KeyRow {
  readonly name: string;
  readonly type: ColumnType;
  readonly position: number;
}

/**
 * Columns of keys that a view has at most: each may need another one for values of other types, and PostgreSQL allows 1,600. Keys without a column are
 * in `_rest`.
 */
export const MOST_COLUMNS = 750;
/** Further, typed columns that a view has at most, in addition to those. */
export const MOST_TWINS = 50;
/** With so many columns of keys, a view will soon be full. */
const NEARLY_FULL = 0.9 * MOST_COLUMNS;

/** Keys of a resource that the log has at most, in all its views. Members named by an id, as in a map of people, would bring new ones without end. */
export const MOST_KEYS = 2_000;

/** The levels of nested objects whose members become columns, by resource; 1 where it is not given. */
export type FlattenLevels = Readonly<Record<string, number>>;

/**
 * SQL: a key that has values and no column, of a view with room for one. A key that only holds objects needs none where these are flattened. ColumnLog
 * decides alike: a key that is undecided only here would be asked for in each sweep.
 */
function isUndecided(levels: FlattenLevels): Prisma.Sql {
  const flattened = Prisma.sql`COALESCE((${JSON.stringify(levels)}::jsonb ->> c.list)::int, 1)`;
  return Prisma.sql`c.name IS NULL AND c.values > 0 AND cardinality(c.path) <= ${flattened} + 1
  AND c.resource NOT IN (
    SELECT resource FROM muster.schema_columns WHERE position IS NOT NULL GROUP BY resource HAVING count(*) >= ${MOST_COLUMNS}::int)
  AND (c.is_kept_whole OR cardinality(c.path) > ${flattened}
    OR c.kinds - 'null' <> jsonb_build_object('object', c.kinds -> 'object'))`;
}

/** SQL: the mirror has to be asked about a twin, and nothing is to be waited for. */
const IS_TWIN_DUE = Prisma.sql`c.twin_due IS NOT NULL AND (c.twin_answers -> c.twin_due -> 'waits' IS NULL OR NOT EXISTS (
    SELECT FROM muster.lists l WHERE l.resource = c.list AND l.records > 0 AND l.last_verified_at IS NULL))`;

/** SQL: the resources of which a view is nearly full. */
export function nearlyFullLists(): Prisma.Sql {
  return Prisma.sql`
    SELECT list FROM muster.schema_columns WHERE position IS NOT NULL GROUP BY list, resource HAVING count(*) >= ${NEARLY_FULL}::float8`;
}

/** Whether there is anything to count or to decide: the only cost of a sweep while nothing changes. */
export async function hasNews(db: Pick<Database, 'prisma'>, levels: FlattenLevels = {}): Promise<boolean> {
  const [row] = await db.prisma.$queryRaw<{ news: boolean }[]>`
    SELECT EXISTS (SELECT FROM muster.change_batches WHERE first_seq > (SELECT seq FROM muster.schema_log_cursor))
      OR EXISTS (SELECT FROM muster.schema_columns c WHERE ${isUndecided(levels)})
      OR EXISTS (SELECT FROM muster.schema_columns c WHERE ${IS_TWIN_DUE})
      OR EXISTS (SELECT FROM muster.schema_resources WHERE rebuild_asked_at IS NOT NULL) AS news`;
  return row!.news;
}

/** Locks the log, and returns the last change that it has counted; undefined while another process has it. */
export async function lockSchemaLog(tx: Transaction): Promise<bigint | undefined> {
  const [row] = await tx.$queryRaw<{ seq: bigint }[]>`
    SELECT seq, ${BY_INDEX} FROM muster.schema_log_cursor FOR UPDATE SKIP LOCKED`;
  return row?.seq;
}

export async function moveSchemaCursor(tx: Transaction, { seq }: { seq: bigint }): Promise<void> {
  await tx.schemaCursor.updateMany({ data: { seq } });
}

/** Every key of these resources, keys with a column first, by position. */
export async function readKeys(db: Pick<Transaction, 'schemaColumn'>, resources: readonly string[]): Promise<KeyRow[]> {
  const rows = await db.schemaColumn.findMany({
    where: { list: { in: [...resources] } },
    omit: { id: true },
    orderBy: [{ view: 'asc' }, { position: { sort: 'asc', nulls: 'last' } }, { id: 'asc' }],
  });
  return rows.map(keyRow);
}

function keyRow({ list: resource, ...rest }: Omit<SchemaColumn, 'id'>): KeyRow {
  const counts = { values: Number(rest.values), nulls: Number(rest.nulls), misfits: Number(rest.misfits) };
  const { type, kinds, twins, twinDue, twinAnswers } = rest;
  return {
    ...rest,
    resource,
    ...counts,
    type: type as ColumnType | null,
    kinds: kinds as Kinds,
    twins: twins as unknown as Twin[],
    twinDue: twinDue as Kind | null,
    twinAnswers: twinAnswers as KeyRow['twinAnswers'],
  };
}

/** Writes new and newly counted keys. The caller has locked the log. */
export async function writeKeys(tx: Transaction, rows: readonly KeyRow[]): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO muster.schema_columns AS c
      (resource, list, path, is_kept_whole, name, type, position, text_position, declared, converts, twins, twin_due, twin_answers, kinds, values, nulls, misfits,
        environment, first_run_id, first_seen_at, last_seen_at)
    SELECT view, resource, ARRAY(SELECT jsonb_array_elements_text(path)), "isKeptWhole", name, type, position, "textPosition", declared, converts, twins, "twinDue",
      "twinAnswers", kinds, values, nulls, misfits, environment, "firstRunId", "firstSeenAt", "lastSeenAt"
    FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS r(view text, resource text, path jsonb, "isKeptWhole" boolean, name text, type text, position int,
      "textPosition" int, declared text, converts boolean, twins jsonb, "twinDue" text, "twinAnswers" jsonb, kinds jsonb, values bigint, nulls bigint, misfits bigint,
      environment text, "firstRunId" uuid, "firstSeenAt" timestamptz, "lastSeenAt" timestamptz)
    ON CONFLICT (resource, path) DO UPDATE SET is_kept_whole = EXCLUDED.is_kept_whole, name = EXCLUDED.name, type = EXCLUDED.type,
      position = EXCLUDED.position, text_position = EXCLUDED.text_position, declared = EXCLUDED.declared, converts = EXCLUDED.converts, twins = EXCLUDED.twins,
      twin_due = EXCLUDED.twin_due, twin_answers = EXCLUDED.twin_answers, kinds = EXCLUDED.kinds, values = EXCLUDED.values, nulls = EXCLUDED.nulls,
      misfits = EXCLUDED.misfits, first_seen_at = EXCLUDED.first_seen_at, last_seen_at = EXCLUDED.last_seen_at`;
}

/** Forgets keys without a column. The caller has locked the log. */
export async function removeKeys(tx: Transaction, keys: readonly Pick<KeyRow, 'view' | 'path'>[]): Promise<void> {
  if (keys.length === 0) return;
  await tx.$executeRaw`
    DELETE FROM muster.schema_columns c USING jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) AS r(view text, path jsonb)
    WHERE c.resource = r.view AND c.path = ARRAY(SELECT jsonb_array_elements_text(r.path)) AND c.position IS NULL`;
}

/** Resources with keys for which the catalogue declared a type when it was last taken over. */
export async function resourcesWithDeclared(tx: Transaction): Promise<string[]> {
  const rows = await tx.schemaColumn.findMany({ where: { declared: { not: null } }, distinct: ['list'], select: { list: true } });
  return rows.map(({ list }) => list);
}

/** A column of which the mirror has to be asked whether all its values are of one kind. */
export async function findTwinDue(tx: Transaction): Promise<ColumnRow | undefined> {
  const [due] = await tx.$queryRaw<
    { id: bigint }[]
  >`SELECT c.id FROM muster.schema_columns c WHERE ${IS_TWIN_DUE} ORDER BY c.id LIMIT 1`;
  return due && (keyRow(await tx.schemaColumn.findUniqueOrThrow({ where: due, omit: { id: true } })) as ColumnRow);
}

/** Resources, new to the log, whose first records came with these runs. */
export async function addResources(
  tx: Transaction,
  rows: readonly { readonly resource: string; readonly firstRunId: string | null }[],
): Promise<void> {
  await tx.schemaResource.createMany({ data: rows.map((row) => ({ ...row })), skipDuplicates: true });
}

/** Records that the resource had keys for which the log, or the view, had no room. */
export async function recordKeysLeftOut(tx: Transaction, { resource }: { resource: string }): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO muster.schema_resources (resource, keys_left_out_at) VALUES (${resource}, now())
    ON CONFLICT (resource) DO UPDATE SET keys_left_out_at = now()`;
}

/** When the first run of each of these resources ended: a key seen later is new. Null before that. */
export async function settledSince(tx: Transaction, resources: readonly string[]): Promise<Map<string, Date | null>> {
  const rows = await tx.$queryRaw<{ resource: string; since: Date | null }[]>`
    SELECT s.resource, CASE WHEN s.first_run_id IS NULL THEN s.rebuilt_at WHEN r.id IS NULL THEN '1970-01-01' ELSE r.finished_at END AS since
    FROM muster.schema_resources s LEFT JOIN muster.runs r ON r.id = s.first_run_id WHERE s.resource = ANY(${resources}::text[])`;
  return new Map(rows.map(({ resource, since }) => [resource, since]));
}

/** A key without a column whose whole first run was counted: waiting tells nothing more. */
export interface Due {
  readonly resource: string;
  readonly view: string;
  readonly path: readonly string[];
  /** That run proved its list complete. */
  readonly isWhole: boolean;
}

/** Keys with values and without a column whose first run has ended and is counted up to its last change. */
export function findDue(tx: Transaction, { seq, levels }: { seq: bigint; levels: FlattenLevels }): Promise<Due[]> {
  return tx.$queryRaw<Due[]>`
    SELECT c.list AS resource, c.resource AS view, c.path, EXISTS (
      SELECT FROM muster.walks w WHERE w.run_id = r.id AND w.resource = c.list AND w.verified) AS "isWhole"
    FROM muster.schema_columns c LEFT JOIN muster.runs r ON r.id = c.first_run_id
    WHERE ${isUndecided(levels)}
      AND (r.id IS NULL OR r.status NOT IN ('queued', 'running') AND NOT EXISTS (
        SELECT FROM muster.change_batches b WHERE b.environment = r.environment AND b.company_id = r.company_id AND b.run_id = r.id
          AND b.resource = c.list AND (b.first_seq IS NULL OR b.first_seq > ${seq})))`;
}

/** The columns of the views of one resource, or of all, in the order in which they were added. Throws `invalid_request` for a cursor that no response gave. */
export async function listColumns(
  db: Pick<Database, 'prisma'>,
  { resource, limit, cursor }: { resource?: string | undefined } & PageQuery,
): Promise<Page<ColumnRow>> {
  const [after = '', position = '0'] = cursor === undefined ? [] : readCursor(cursor, /^[a-z][a-z0-9_]* \d{1,9}$/).split(' ');
  const isAsked = resource === undefined ? Prisma.sql`TRUE` : Prisma.sql`list = ${resource}`;
  const rows = await db.prisma.$queryRaw<Omit<SchemaColumn, 'id'>[]>`
    SELECT list, resource AS view, path, is_kept_whole AS "isKeptWhole", name, type, position, text_position AS "textPosition", declared, converts, twins,
      twin_due AS "twinDue", twin_answers AS "twinAnswers", kinds, values, nulls, misfits, environment, first_run_id AS "firstRunId",
      first_seen_at AS "firstSeenAt", last_seen_at AS "lastSeenAt"
    FROM muster.schema_columns
    WHERE position IS NOT NULL AND (resource, position) > (${after}, ${Number(position)}::int) AND ${isAsked}
    ORDER BY schema_columns.resource, position LIMIT ${limit + 1}::int`;
  return pageOf(rows.map(keyRow).filter(isColumn), limit, (row) => `${row.view} ${row.position}`);
}

export function isColumn(row: KeyRow): row is ColumnRow {
  return row.position !== null;
}

/** Requests that these resources be counted again from the mirror. */
export async function askForRebuild(db: Pick<Transaction, '$executeRaw'>, resources: readonly string[]): Promise<void> {
  await db.$executeRaw`
    INSERT INTO muster.schema_resources (resource, rebuild_asked_at) SELECT resource, now() FROM unnest(${resources}::text[]) AS resource
    ON CONFLICT (resource) DO UPDATE SET rebuild_asked_at = now()`;
}

export async function findAskedRebuild(db: Pick<Transaction, 'schemaResource'>): Promise<string | undefined> {
  const row = await db.schemaResource.findFirst({ where: { rebuildAskedAt: { not: null } }, orderBy: { rebuildAskedAt: 'asc' } });
  return row?.resource;
}

/** The caller has locked the log. */
export async function recordRebuilt(tx: Transaction, { resource }: { resource: string }): Promise<void> {
  await tx.schemaResource.updateMany({ where: { resource }, data: { rebuildAskedAt: null, rebuiltAt: new Date() } });
}

/** Forgets which lists of the resource have values of another type. */
export async function forgetTypeMismatches(tx: Transaction, { resource }: { resource: string }): Promise<void> {
  await tx.schemaTypeMismatch.deleteMany({ where: { resource } });
}
