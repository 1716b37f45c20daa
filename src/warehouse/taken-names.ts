import type { Catalogue } from '../catalogue/endpoint.js';
import { listWithSameNames } from '../catalogue/view-names.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { mirrorTable } from '../mirror/mirror-table.js';

/**
 * Throws `invalid_configuration` if a list that the catalogue had before has a view whose name is kept for the views of a list that it has now: extending
 * one would change the other. The catalogue refuses such names itself, but it does not know what an earlier release has made.
 */
export async function requireFreeNames(db: Database, { endpoints }: Catalogue): Promise<void> {
  const resources = endpoints.map(({ resource }) => resource);
  const rows = await withDatabaseErrors(
    db.prisma.$queryRaw<{ name: string }[]>`
      SELECT t.relname::text AS name FROM pg_class t
      JOIN pg_class v ON v.relname = t.relname AND v.relnamespace = 'warehouse'::regnamespace AND v.relkind = 'v'
      WHERE t.relnamespace = 'mirror'::regnamespace AND t.relname <> ALL(${resources}::text[]) AND EXISTS (
        SELECT FROM pg_rewrite w JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
        WHERE w.ev_class = v.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid)
      ORDER BY 1`,
  );
  for (const { name } of rows) {
    const same = listWithSameNames(name, resources);
    if (same) throw nameTaken(name, same);
  }
}

function nameTaken(name: string, same: { readonly list: string; readonly name: string }): MusterError {
  return new MusterError(
    'invalid_configuration',
    `The database has a list ${name}, which is not in the catalogue any more. It needs the name ${same.name}, which is kept for the views and functions ` +
      `of ${same.list}. Mirror it under another name, and drop what it has under this one: DROP TABLE ${mirrorTable(name)} CASCADE`,
  );
}
