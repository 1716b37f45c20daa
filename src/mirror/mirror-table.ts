import type { Catalogue } from '../catalogue/endpoint.js';
import { lackingRights } from '../db/connection/connect-failure.js';
import type { Database } from '../db/connection/database.js';
import { sqlState, withDatabaseErrors } from '../db/connection/sql-state.js';
import { runStep } from '../db/connection/step.js';
import { inTransaction } from '../db/connection/transaction.js';
import { isOf } from '../db/tables/connections.js';
import type { ListKey } from '../db/tables/lists.js';
import { takeLock } from '../db/tables/locks.js';
import { Prisma } from '../generated/prisma/client.js';

const RESOURCE = /^[a-z][a-z0-9_]*$/;

/** The beginning of the ids of a parent's children: the parent's id, encoded as in a path, so that no two pairs of ids give the same one. */
export function childPrefix(parent: string): string {
  return `${encodeURIComponent(parent)}/`;
}

/** The quoted name of a resource's table. Throws on a name that the catalogue refuses. */
export function mirrorTable(resource: string): string {
  if (!RESOURCE.test(resource)) throw new TypeError(`not the name of a resource: ${JSON.stringify(resource)}`);
  return `mirror."${resource}"`;
}

/** The table's name as a part of a statement. */
export function tableOf({ resource }: Pick<ListKey, 'resource'>): Prisma.Sql {
  return Prisma.raw(mirrorTable(resource));
}

/**
 * Makes the table of every resource that has none, which a catalogue file has added. All tables have one shape (mirror-columns.ts), and room in each page
 * for records that change. Processes may run it at the same time: each waits for the lock. Where no table is missing, the role needs no right to make
 * one; throws `invalid_configuration` where it needs that right and has not.
 */
export async function ensureMirrorTables(db: Database, catalogue: Catalogue): Promise<void> {
  const tables = catalogue.endpoints.map(({ resource }) => mirrorTable(resource));
  const missing = await withDatabaseErrors(
    db.prisma.$queryRaw<{ name: string; role: string }[]>`
      SELECT name, current_user::text AS role FROM unnest(${tables}::text[]) AS name WHERE to_regclass(name) IS NULL`,
  );
  for (const { name, role } of missing) {
    await inTransaction(db, async (tx) => {
      await takeLock(tx, 'mirror_tables');
      await tx.$executeRaw`
        CREATE TABLE IF NOT EXISTS ${Prisma.raw(name)} (LIKE mirror.employees INCLUDING ALL) WITH (fillfactor = 90)`;
    }).catch((error: unknown) => {
      throw sqlState(error) === '42501'
        ? lackingRights(role, `may not make ${name}, the table of a list in the catalogue`, error)
        : error;
    });
  }
}

/** The relations of schema `mirror` that are Muster's own. */
export function mirrorRelations({ endpoints }: Catalogue): string[] {
  return ['companies', 'changes', ...endpoints.map(({ resource }) => resource)];
}

/** Whether the list has no row, deleted ones included. */
export async function isEmptyList(db: Pick<Database, 'steps'>, list: ListKey): Promise<boolean> {
  const rows = await runStep(db, Prisma.sql`SELECT 1 FROM ${Prisma.raw(mirrorTable(list.resource))} WHERE ${isOf(list)} LIMIT 1`);
  return rows.length === 0;
}

/**
 * The id of the next living record after `after` that the present grant is shown; undefined when none follows. Whether a row is held
 * is a value, not EXISTS (docs/internals/planner.md).
 */
export async function firstVisibleId(
  { prisma }: Pick<Database, 'prisma'>,
  { environment, companyId, resource }: ListKey,
  after: string,
): Promise<string | undefined> {
  const [row] = await prisma.$queryRaw<{ id: string }[]>`
    SELECT id FROM ${Prisma.raw(mirrorTable(resource))} t
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND id > ${after} AND deleted_at IS NULL
      AND (SELECT 1 FROM muster.held_rows h
        WHERE h.environment = ${environment} AND h.company_id = ${companyId}::uuid AND h.resource = ${resource} AND h.id = t.id LIMIT 1) IS NULL
    ORDER BY id LIMIT 1`;
  return row?.id;
}
