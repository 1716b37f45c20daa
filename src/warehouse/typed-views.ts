import pg from 'pg';
import type { Catalogue } from '../catalogue/endpoint.js';
import { lackingRights } from '../db/connection/connect-failure.js';
import type { Database } from '../db/connection/database.js';
import { isPassingTrouble, sqlState, withDatabaseErrors } from '../db/connection/sql-state.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { takeLock } from '../db/tables/locks.js';
import { type ArrayView, readArrays } from '../db/tables/schema-arrays.js';
import { type ColumnRow, isColumn, readKeys } from '../db/tables/schema-columns.js';
import type { Logger } from '../observability/logger.js';
import { typedView } from './history.js';
import { elementsView, fixedColumns, REST, type RecordView, viewsOf } from './record-views.js';
import { requireFreeNames } from './taken-names.js';
import { commentOnView, findUncommented } from './view-comments.js';
import { keyColumns, restOf } from './view-text.js';

/**
 * Makes the views of every resource that lacks them. Processes may run it at the same time. Where no view is missing, the role needs no right to make one;
 * throws `invalid_configuration` where it needs that right and has not, and for a name that is taken.
 */
export async function ensureTypedViews(db: Database, catalogue: Catalogue): Promise<void> {
  await requireFreeNames(db, catalogue);
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const named = resources.flatMap((resource) => viewsOf(resource).map(({ name }) => ({ resource, name })));
  const missing = await withDatabaseErrors(
    db.prisma.$queryRaw<{ resource: string; role: string }[]>`
      SELECT DISTINCT resource, current_user::text AS role FROM jsonb_to_recordset(${JSON.stringify(named)}::jsonb) AS v(resource text, name text)
      WHERE to_regclass(name) IS NULL`,
  );
  for (const { resource, role } of missing) {
    await replaceViews(db, resource).catch((error: unknown) => {
      throw sqlState(error) === '42501'
        ? lackingRights(role, `may not make ${typedView(resource)}, the view of a list in the catalogue, or its history`, error)
        : error;
    });
  }
  await commentOnOlderViews(db, resources);
}

/** Comments on the views that an earlier release made. No comment is worth a start that waits or fails. */
async function commentOnOlderViews(db: Database, resources: readonly string[]): Promise<void> {
  const views = await withDatabaseErrors(findUncommented(db, resources.flatMap(viewsOf)));
  if (views.length === 0) return;
  await inTransaction(db, async (tx) => {
    await lockViews(tx);
    for (const view of views) await commentOnView(tx, view, (await readKeys(tx, [view.columnsOf])).filter(isColumn));
  }).catch((error: unknown) => {
    if (!isPassingTrouble(error)) throw error;
  });
}

/** Resources with a view that lacks a column of the log, or the conversion of one. A resource whose table is gone has none. */
export async function findStaleViews(db: Pick<Database, 'prisma'>): Promise<string[]> {
  const logged = await db.prisma.$queryRaw<{ resource: string; view: string; columns: number; conversions: number }[]>`
    SELECT list AS resource, resource AS view, (count(position) + count(text_position) + sum(jsonb_array_length(twins)))::int AS columns,
      (count(position) FILTER (WHERE converts) + count(text_position) FILTER (WHERE converts)
        + sum((SELECT count(*) FROM jsonb_array_elements(twins) twin WHERE (twin -> 'converts')::boolean)))::int AS conversions
    FROM muster.schema_columns
    WHERE to_regclass(format('mirror.%I', list)) IS NOT NULL GROUP BY 1, 2`;
  const known = new Map(logged.map((view) => [view.view, view]));
  const resources = [...new Set(logged.map(({ resource }) => resource))];
  const arrays = await readArrays(db.prisma, resources);
  const wanted = resources.flatMap((resource) =>
    allViews(resource, arrays, (view) => (known.get(view)?.columns ?? 0) > 0).map((view) => ({
      resource,
      name: view.name,
      columns: (known.get(view.columnsOf)?.columns ?? 0) + fixedColumns(view),
      conversions: known.get(view.columnsOf)?.conversions ?? 0,
    })),
  );
  const stale = await db.prisma.$queryRaw<{ resource: string }[]>`
    SELECT DISTINCT resource FROM jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) AS v(resource text, name text, columns int, conversions int)
    WHERE columns <> (SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(name) AND attnum > 0)
      OR CASE WHEN conversions > 0 THEN regexp_count(pg_get_viewdef(to_regclass(name)), '\\mdeclared_[a-z]+\\(') < conversions ELSE false END`;
  return stale.map(({ resource }) => resource);
}

/** The views of a resource: those of its records, and one for each array whose elements have a column. */
function allViews(resource: string, arrays: readonly ArrayView[], hasColumns: (view: string) => boolean): readonly RecordView[] {
  const ours = arrays.filter((array) => array.resource === resource && hasColumns(array.view));
  return [...viewsOf(resource), ...ours.map(elementsView)];
}

/**
 * Extends the views that lack a column. A view that cannot be extended now is left to a later sweep, or to a role that may. An error of one list is thrown
 * after the other lists had their turn: it may come back in every sweep, and they must not wait for it.
 */
export async function extendViews(db: Database, logger: Logger): Promise<void> {
  const errors: unknown[] = [];
  for (const resource of await findStaleViews(db)) {
    try {
      await replaceViews(db, resource);
      logger.info({ resource }, 'typed view extended');
    } catch (error) {
      if (sqlState(error) === '42501')
        logger.warn({ resource }, 'this role may not extend the typed view: run `muster migrate` as its owner');
      else if (isPassingTrouble(error)) logger.debug({ resource, err: error }, 'typed view not extended yet: it is being read');
      else errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/**
 * The wait for a view that is being read. New readers of the view wait as long; writers of the mirror never do. The next sweep tries again.
 */
const LOCK_TIMEOUT = '500ms';

/**
 * Gives the views of a resource the columns of the log: existing columns keep their place and type, and new ones follow. Only a view without a column of a
 * key, and without dependent views, is dropped and made again, so that its first columns come before the columns of `trailing`. Granted rights stay.
 * Views of many hundred columns take PostgreSQL a minute where the machine is busy.
 */
function replaceViews(db: Pick<Database, 'prisma'>, resource: string): Promise<void> {
  return inTransaction(
    db,
    async (tx) => {
      await lockViews(tx);
      const logged = (await readKeys(tx, [resource])).filter(isColumn);
      const hasColumns = (view: string) => logged.some((row) => row.view === view);
      for (const view of allViews(resource, await readArrays(tx, [resource]), hasColumns)) {
        const columns = logged.filter((row) => row.view === view.columnsOf);
        const present = await columnsOf(tx, view);
        if (present.length === fixedColumns(view) && columns.length > 0 && (await isFree(tx, view))) {
          const grants = await grantsOn(tx, view);
          for (const { signature } of view.functions) await tx.$executeRawUnsafe(`DROP FUNCTION IF EXISTS ${signature}`);
          await tx.$executeRawUnsafe(`DROP VIEW ${view.name}`);
          await tx.$executeRawUnsafe(viewText(view, columns, []));
          for (const grant of grants) await tx.$executeRawUnsafe(grant);
        } else await tx.$executeRawUnsafe(viewText(view, columns, present));
        for (const { text } of view.functions) await tx.$executeRawUnsafe(text);
        await commentOnView(tx, view, columns);
      }
    },
    { timeoutMs: WHOLE_LIST_MS },
  );
}

async function lockViews(tx: Transaction): Promise<void> {
  await takeLock(tx, 'typed_views');
  await tx.$executeRaw`SELECT set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`;
}

async function columnsOf(tx: Transaction, { name }: RecordView): Promise<string[]> {
  const rows = await tx.$queryRaw<{ column: string }[]>`
    SELECT attname::text AS column FROM pg_attribute WHERE attrelid = to_regclass(${name}) AND attnum > 0 ORDER BY attnum`;
  return rows.map(({ column }) => column);
}

/** Whether nothing depends on the view, its type and the array of it, but its own rule, and its functions, on which nothing depends. */
async function isFree(tx: Transaction, { name, functions }: RecordView): Promise<boolean> {
  const signatures = functions.map(({ signature }) => signature);
  const [row] = await tx.$queryRaw<{ free: boolean }[]>`
    WITH f AS (SELECT to_regprocedure(signature)::oid AS oid FROM unnest(${signatures}::text[]) AS signature WHERE to_regprocedure(signature) IS NOT NULL)
    SELECT NOT EXISTS (SELECT FROM pg_depend d LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
      WHERE d.deptype <> 'i' AND w.ev_class IS DISTINCT FROM v.oid AND NOT (d.classid = 'pg_proc'::regclass AND d.objid IN (SELECT oid FROM f)) AND (
        d.refclassid = 'pg_class'::regclass AND d.refobjid = v.oid OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
        OR d.refclassid = 'pg_proc'::regclass AND d.refobjid IN (SELECT oid FROM f))) AS free
    FROM pg_class v JOIN pg_type t ON t.oid = v.reltype WHERE v.oid = to_regclass(${name})`;
  return row?.free ?? true;
}

async function grantsOn(tx: Transaction, { name }: RecordView): Promise<string[]> {
  const rows = await tx.$queryRaw<{ text: string }[]>`
    SELECT format('GRANT %s ON %s TO %s%s', a.privilege_type, v.oid::regclass, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
      CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS text
    FROM pg_class v CROSS JOIN aclexplode(v.relacl) a
    WHERE v.oid = to_regclass(${name}) AND a.grantee <> v.relowner`;
  return rows.map(({ text }) => text);
}

/** `present`: the columns that the view has. */
function viewText(
  { name: view, leading, trailing, data, from }: RecordView,
  rows: readonly ColumnRow[],
  present: readonly string[],
): string {
  const keys = new Map(keyColumns(rows, data).map(({ name, type, expression }) => [name, `(${expression})::${type}`]));
  const fixed = { ...leading, ...trailing, [REST]: restOf(rows, data) };
  const expressions = new Map([...Object.entries(fixed), ...keys]);
  const added = [...Object.keys(leading), ...keys.keys(), ...Object.keys(trailing), REST].filter(
    (name) => !present.includes(name),
  );
  const columns = [...present, ...added].map((name) => `${expressions.get(name) ?? 'NULL'} AS ${pg.escapeIdentifier(name)}`);
  return `CREATE OR REPLACE VIEW ${view} AS SELECT ${columns.join(',\n')} FROM ${from}`;
}
