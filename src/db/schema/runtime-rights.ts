import type pg from 'pg';
import { Prisma } from '../../generated/prisma/client.js';
import { lackingRights } from '../connection/connect-failure.js';
import { allRelations, asGrantor } from './granting.js';
import { QUEUE_SCHEMA } from './queue-tables.js';
import { readingGrants } from './reader-rights.js';

/** Rights of api and workers on tables. They create none. */
const TABLE_RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
const SEQUENCE_RIGHTS = ['USAGE'];
const SCHEMAS = ['muster', 'mirror', QUEUE_SCHEMA];
/** Exports and schema sweeps read the views; their owner extends them. */
const READ_SCHEMAS = ['warehouse'];

/**
 * Grants a role everything that api and workers need, on existing tables and on later tables of this user: the owner migrates, and
 * the processes run with fewer rights. Throws `invalid_configuration` if there is no such role, or if the user of `url` may not grant.
 */
export function grantRuntime(url: string, role: string): Promise<void> {
  return asGrantor(url, role, async (client, grantee) => {
    const { rows: schemas } = await client.query<{ name: string }>(
      Prisma.sql`SELECT quote_ident(nspname) AS name FROM pg_namespace WHERE nspname = ANY(${SCHEMAS})`,
    );
    const { tables, sequences } = await allRelations(client, SCHEMAS);
    const { rows: databases } = await client.query<{ name: string }>('SELECT quote_ident(current_database()) AS name');
    const names = schemas.map(({ name }) => name);
    return [
      // BullMQ adds many jobs through a temporary table.
      `GRANT TEMPORARY ON DATABASE ${databases[0]!.name} TO ${grantee}`,
      `GRANT USAGE ON SCHEMA public, ${names.join(', ')} TO ${grantee}`,
      `GRANT SELECT ON TABLE public._prisma_migrations TO ${grantee}`,
      `GRANT ${TABLE_RIGHTS.join(', ')} ON TABLE ${tables.join(', ')} TO ${grantee}`,
      `GRANT ${SEQUENCE_RIGHTS.join(', ')} ON SEQUENCE ${sequences.join(', ')} TO ${grantee}`,
      ...names.flatMap((name) => [
        `ALTER DEFAULT PRIVILEGES IN SCHEMA ${name} GRANT ${TABLE_RIGHTS.join(', ')} ON TABLES TO ${grantee}`,
        `ALTER DEFAULT PRIVILEGES IN SCHEMA ${name} GRANT ${SEQUENCE_RIGHTS.join(', ')} ON SEQUENCES TO ${grantee}`,
      ]),
      ...(await readingGrants(client, grantee)),
    ];
  });
}

/**
 * Throws `invalid_configuration` if the role of the connection lacks a right that api and workers need, with the command that grants it. `mirrorTables` are
 * the names of our tables in schema `mirror`; other tables there are ignored.
 */
export async function requireRuntimeRights(db: Pick<pg.Pool, 'query'>, mirrorTables: readonly string[]): Promise<void> {
  const { rows } = await db.query<{ role: string; what: string; rights: string }>(
    Prisma.sql`WITH relations AS (
       SELECT c.oid, format('%I.%I', nspname, relname) AS name, relkind FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
       WHERE relkind IN ('r', 'p', 'v', 'S') AND nspname = ANY(${SCHEMAS}) AND (nspname <> 'mirror' OR relname = ANY(${mirrorTables})))
     SELECT current_user::text AS role, what, string_agg(wanted, ', ' ORDER BY n) AS rights FROM (
       SELECT 0 AS n, 'schema ' || nspname AS what, 'USAGE' AS wanted FROM pg_namespace
       WHERE nspname = ANY(${SCHEMAS}::text[] || ${READ_SCHEMAS}::text[]) AND NOT has_schema_privilege(oid, 'USAGE')
       UNION ALL SELECT n, name, wanted FROM relations, unnest(${TABLE_RIGHTS}::text[]) WITH ORDINALITY AS w(wanted, n)
       WHERE relkind IN ('r', 'p') AND NOT has_table_privilege(oid, wanted)
       UNION ALL SELECT 0, name, 'SELECT' FROM relations WHERE relkind = 'v' AND NOT has_table_privilege(oid, 'SELECT')
       UNION ALL SELECT n, name, wanted FROM relations, unnest(${SEQUENCE_RIGHTS}::text[]) WITH ORDINALITY AS w(wanted, n)
       WHERE CASE relkind WHEN 'S' THEN NOT has_sequence_privilege(oid, wanted) ELSE false END) AS missing
     GROUP BY what ORDER BY what`,
  );
  const [first, ...others] = rows;
  if (!first) return;
  const more = others.length === 0 ? '' : `, and more on ${others.length} others`;
  throw lackingRights(first.role, `lacks ${first.rights} on ${first.what}${more}`);
}
