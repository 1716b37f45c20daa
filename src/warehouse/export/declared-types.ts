import type pg from 'pg';
import { Prisma } from '../../generated/prisma/client.js';
import type { ExportedView } from './exported-view.js';

/** A key as the log has it. A database of an earlier version has no twins. */
interface DeclaredKey {
  readonly name: string;
  readonly declared: string;
  readonly twins: readonly { readonly name: string }[] | null;
}

/**
 * The types that the catalogue declares for columns of a view, by the names of these, for example `numeric(12,2)`. A key that already had a column of another
 * type has the declared one in a twin.
 */
export async function declaredTypes(client: pg.ClientBase, { loggedAs }: ExportedView): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<DeclaredKey>(
    // `resource` is the name of the view. Read through jsonb, since a database of an earlier version lacks `declared` and `twins`.
    Prisma.sql`SELECT key ->> 'name' AS name, key ->> 'declared' AS declared, key -> 'twins' AS twins
     FROM muster.schema_columns s CROSS JOIN LATERAL to_jsonb(s) key
     WHERE s.resource = ${loggedAs} AND key ->> 'declared' IS NOT NULL`,
  );
  return new Map(
    rows.flatMap(({ name, declared, twins }) =>
      [name, ...(twins ?? []).map((twin) => twin.name)].map((each) => [each, declared]),
    ),
  );
}
