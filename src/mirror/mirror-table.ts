import type { Catalogue } from '../catalogue/endpoint.js';
import type { Database } from '../db/database.js';
import type { ListKey } from '../db/tables/lists.js';
import type { Transaction } from '../db/transaction.js';

const RESOURCE = /^[a-z][a-z0-9_]*$/;

/** The quoted name of a resource's table. Throws on a name that the catalogue would never have let through. */
export function mirrorTable(resource: string): string {
  if (!RESOURCE.test(resource)) throw new TypeError(`not the name of a resource: ${JSON.stringify(resource)}`);
  return `mirror."${resource}"`;
}

/**
 * Makes the table of every resource that has none: those that a catalogue file adds to the built-in ones. All tables
 * have one shape, and room in each page for records that change. Safe side by side: the statements wait for each other on the advisory lock.
 */
export async function ensureMirrorTables(db: Database, catalogue: Catalogue): Promise<void> {
  for (const { resource } of catalogue.endpoints) {
    const table = mirrorTable(resource);
    await db.prisma.$transaction([
      db.prisma.$executeRawUnsafe(`SELECT 1 FROM pg_advisory_xact_lock(72707370)`),
      db.prisma.$executeRawUnsafe(
        `CREATE TABLE IF NOT EXISTS ${table} (LIKE mirror.employees INCLUDING ALL) WITH (fillfactor = 90)`,
      ),
    ]);
  }
}

/** Whether the list has no row, deleted ones included. */
export async function isEmptyList(tx: Transaction, { environment, companyId, resource }: ListKey): Promise<boolean> {
  const rows = await tx.$queryRawUnsafe<unknown[]>(
    `SELECT 1 FROM ${mirrorTable(resource)} WHERE environment = $1 AND company_id = $2::uuid LIMIT 1`,
    environment,
    companyId,
  );
  return rows.length === 0;
}

/** The id of the living record that follows `after` in the order of ids; undefined when none does. */
export async function firstLivingId(
  { prisma }: Pick<Database, 'prisma'>,
  { environment, companyId, resource }: ListKey,
  after: string,
): Promise<string | undefined> {
  const [row] = await prisma.$queryRawUnsafe<{ id: string }[]>(
    `SELECT id FROM ${mirrorTable(resource)} WHERE environment = $1 AND company_id = $2::uuid AND id > $3 AND deleted_at IS NULL
     ORDER BY id LIMIT 1`,
    environment,
    companyId,
    after,
  );
  return row?.id;
}
