import type { Database } from '../connection/database.js';

/** The resources in the schema log (schema-columns.ts), by name: each list that has ever had a record. */
export async function listedResources(db: Pick<Database['prisma'], 'schemaResource'>): Promise<string[]> {
  const rows = await db.schemaResource.findMany({ select: { resource: true }, orderBy: { resource: 'asc' } });
  return rows.map(({ resource }) => resource);
}
