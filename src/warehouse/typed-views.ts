import pg from 'pg';
import type { Catalogue } from '../catalogue/endpoint.js';
import { lackingRights } from '../db/connection/connect-failure.js';
import type { Database } from '../db/connection/database.js';
import { isPassingTrouble, sqlState, withDatabaseErrors } from '../db/connection/sql-state.js';
import { inTransaction, type Transaction } from '../db/connection/transaction.js';
import { takeLock } from '../db/tables/locks.js';
import { type ColumnRow, isColumn, readKeys } from '../db/tables/schema-columns.js';
import { SHOWN_COLUMNS } from '../mirror/mirror-columns.js';
import { mirrorTable } from '../mirror/mirror-table.js';
import type { Logger } from '../observability/logger.js';
import { asOfFunction, asOfText, historyView, typedView, versionsQuery } from './history.js';
import { keyColumns, restOf } from './view-text.js';

/** The columns before the keys' columns. */
const LEADING = ['environment', 'company_id', 'id'];
/** The columns after the view's first columns. Columns that are added later follow all of these. */
const LIVING_COLUMNS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(SHOWN_COLUMNS.map((name) => [`_${name}`, `t.${name}`])),
  _verified_at: 'l.last_verified_at',
};
const VERSION_COLUMNS: Readonly<Record<string, string>> = {
  _valid_from: 't._valid_from',
  _valid_to: 't._valid_to',
  _is_current: 't._is_current',
  _op: 't._op',
  _seq: 't._seq',
};
const REST = '_rest';

/** A view of a resource's records, and what it shows of each besides the columns of keys. */
interface RecordView {
  readonly resource: string;
  /** Quoted, with its schema. */
  readonly name: string;
  readonly trailing: Readonly<Record<string, string>>;
  /** The FROM clause. `t.data` is the record. */
  readonly from: string;
}

/** The living records, and every version of each. */
function viewsOf(resource: string): readonly RecordView[] {
  const living = `${mirrorTable(resource)} t
    LEFT JOIN muster.lists l ON l.environment = t.environment AND l.company_id = t.company_id AND l.resource = ${pg.escapeLiteral(resource)}
    WHERE t.deleted_at IS NULL`;
  return [
    { resource, name: typedView(resource), trailing: LIVING_COLUMNS, from: living },
    { resource, name: historyView(resource), trailing: VERSION_COLUMNS, from: `(${versionsQuery(resource)}) t` },
  ];
}

/** The counts for both views. */
const FIXED_COLUMNS = [LIVING_COLUMNS, VERSION_COLUMNS].map(fixedColumns);

function fixedColumns(trailing: RecordView['trailing']): number {
  return LEADING.length + Object.keys(trailing).length + 1;
}

/**
 * Makes the views of every resource that lacks them. Processes may run it at the same time. Where no view is missing, the role needs no right to make one;
 * throws `invalid_configuration` where it needs that right and has not.
 */
export async function ensureTypedViews(db: Database, { endpoints }: Catalogue): Promise<void> {
  const resources = endpoints.map(({ resource }) => resource);
  const missing = await withDatabaseErrors(
    db.prisma.$queryRaw<{ resource: string; role: string }[]>`
      SELECT resource, current_user::text AS role FROM unnest(${resources}::text[]) AS resource
      WHERE (SELECT count(*) FROM pg_class WHERE relnamespace = 'warehouse'::regnamespace AND relname IN (resource, resource || '_history')) < 2`,
  );
  for (const { resource, role } of missing) {
    await replaceViews(db, resource).catch((error: unknown) => {
      throw sqlState(error) === '42501'
        ? lackingRights(role, `may not make ${typedView(resource)}, the view of a list in the catalogue, or its history`, error)
        : error;
    });
  }
}

/** Views that lack a column of the log. A resource whose table is gone has none. */
async function findStaleViews(db: Pick<Database, 'prisma'>): Promise<string[]> {
  const rows = await db.prisma.$queryRaw<{ resource: string }[]>`
    SELECT DISTINCT c.resource FROM (
      SELECT resource, (count(position) + count(text_position))::int AS columns FROM muster.schema_columns GROUP BY resource) c
    CROSS JOIN unnest(ARRAY['', '_history'], ${FIXED_COLUMNS}::int[]) AS v(suffix, fixed)
    WHERE to_regclass(format('mirror.%I', c.resource)) IS NOT NULL AND c.columns + v.fixed <> (
      SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(format('warehouse.%I', c.resource || v.suffix)) AND attnum > 0)`;
  return rows.map(({ resource }) => resource);
}

/** Extends the views that lack a column. A view that cannot be extended now is left to a later sweep, or to a role that may. */
export async function extendViews(db: Database, logger: Logger): Promise<void> {
  for (const resource of await findStaleViews(db)) {
    try {
      await replaceViews(db, resource);
      logger.info({ resource }, 'typed view extended');
    } catch (error) {
      if (sqlState(error) === '42501')
        logger.warn({ resource }, 'this role may not extend the typed view: run `muster migrate` as its owner');
      else if (isPassingTrouble(error)) logger.debug({ resource, err: error }, 'typed view not extended yet: it is being read');
      else throw error;
    }
  }
}

/**
 * The wait for a view that is being read. New readers of the view wait as long; writers of the mirror never do. The next sweep tries again.
 */
const LOCK_TIMEOUT = '500ms';

/**
 * Gives both views of a resource the columns of the log: existing columns keep their place and type, and new ones follow. Only a view without a column of a
 * key, and without dependent views, is dropped and made again, so that its first columns come before the columns of `trailing`. Granted rights stay.
 */
function replaceViews(db: Pick<Database, 'prisma'>, resource: string): Promise<void> {
  return inTransaction(db, async (tx) => {
    await takeLock(tx, 'typed_views');
    await tx.$executeRaw`SELECT set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`;
    const columns = (await readKeys(tx, [resource])).filter(isColumn);
    for (const view of viewsOf(resource)) {
      const present = await columnsOf(tx, view);
      if (present.length === fixedColumns(view.trailing) && columns.length > 0 && (await isFree(tx, view))) {
        const grants = await grantsOn(tx, view);
        await tx.$executeRawUnsafe(`DROP FUNCTION IF EXISTS ${asOfFunction(resource)}`);
        await tx.$executeRawUnsafe(`DROP VIEW ${view.name}`);
        await tx.$executeRawUnsafe(viewText(view, columns, []));
        for (const grant of grants) await tx.$executeRawUnsafe(grant);
      } else await tx.$executeRawUnsafe(viewText(view, columns, present));
    }
    await tx.$executeRawUnsafe(asOfText(resource));
  });
}

async function columnsOf(tx: Transaction, { name }: RecordView): Promise<string[]> {
  const rows = await tx.$queryRaw<{ column: string }[]>`
    SELECT attname::text AS column FROM pg_attribute WHERE attrelid = to_regclass(${name}) AND attnum > 0 ORDER BY attnum`;
  return rows.map(({ column }) => column);
}

/** Whether nothing depends on the view but its own rule and type, and the function of `asOfText`, on which nothing depends. */
async function isFree(tx: Transaction, { name, resource }: RecordView): Promise<boolean> {
  const [row] = await tx.$queryRaw<{ free: boolean }[]>`
    SELECT NOT EXISTS (SELECT FROM pg_depend d LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
      WHERE d.deptype <> 'i' AND w.ev_class IS DISTINCT FROM v.oid AND NOT (d.classid = 'pg_proc'::regclass AND d.objid = f.oid) AND (
        d.refclassid = 'pg_class'::regclass AND d.refobjid = v.oid OR d.refclassid = 'pg_type'::regclass AND d.refobjid = v.reltype
        OR d.refclassid = 'pg_proc'::regclass AND d.refobjid = f.oid)) AS free
    FROM pg_class v CROSS JOIN (SELECT COALESCE(to_regprocedure(${asOfFunction(resource)})::oid, 0) AS oid) f WHERE v.oid = to_regclass(${name})`;
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
function viewText({ name: view, trailing, from }: RecordView, rows: readonly ColumnRow[], present: readonly string[]): string {
  const keys = new Map(keyColumns(rows, 't.data').map(({ name, type, expression }) => [name, `(${expression})::${type}`]));
  const fixed = {
    ...Object.fromEntries(LEADING.map((name) => [name, `t.${name}`])),
    ...trailing,
    [REST]: restOf(rows, 't.data'),
  };
  const expressions = new Map([...Object.entries(fixed), ...keys]);
  const added = [...LEADING, ...keys.keys(), ...Object.keys(trailing), REST].filter((name) => !present.includes(name));
  const columns = [...present, ...added].map((name) => `${expressions.get(name) ?? 'NULL'} AS ${pg.escapeIdentifier(name)}`);
  return `CREATE OR REPLACE VIEW ${view} AS SELECT ${columns.join(',\n')} FROM ${from}`;
}
