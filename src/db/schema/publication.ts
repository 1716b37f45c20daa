import pg from 'pg';
import { MusterError } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import { requireMusterDatabase } from '../connection/muster-database.js';
import { asOwner } from './granting.js';

export interface Publication {
  /** Quoted names of the tables of the mirror that it has now. */
  readonly tables: readonly string[];
  /** The tables among them that it lacked. */
  readonly added: readonly string[];
  /** `logical` is needed to subscribe. */
  readonly walLevel: string;
  /** Whether a pooler stands between. */
  readonly isPooled: boolean;
}

interface Found {
  readonly name: string;
  readonly isThere: boolean;
  readonly isPublished: boolean;
  /** PostgreSQL refuses to update a table that is published without an identity: no walk could write to it any more. */
  readonly lacksIdentity: boolean;
}

/**
 * Makes a publication of the mirror's tables for logical replication, or adds the tables that it lacks. Its other tables stay. Rows are identified by
 * their primary key, unless another identity was set. Throws `invalid_configuration` if a table is missing, or if the user of
 * `url` may not publish.
 */
export function publish(url: string, publication: string, tables: readonly string[]): Promise<Publication> {
  const mayNot = 'may not publish these tables; run the command as their owner, with the right CREATE on the database';
  return asOwner(url, { application: 'muster publish', mayNot }, async (client, session) => {
    await requireMusterDatabase(client);
    // One table at a time, with a short wait for its lock: walks would wait for ours.
    await client.query(
      `BEGIN; SET LOCAL lock_timeout = '5s'; SELECT 1 FROM muster.locks WHERE name = 'mirror_tables' FOR UPDATE`,
    );
    const found = await findTables(client, publication, tables);
    const missing = found.filter(({ isThere }) => !isThere).map(({ name }) => name);
    if (missing.length > 0)
      throw new MusterError('invalid_configuration', `There is no table ${missing.join(', ')}. Run \`muster migrate\` first.`);
    for (const { name } of found.filter(({ lacksIdentity }) => lacksIdentity))
      await client.query(`ALTER TABLE ${name} REPLICA IDENTITY DEFAULT`);
    const added = found.filter(({ isPublished }) => !isPublished).map(({ name }) => name);
    const { rows } = await client.query<{ isThere: boolean; walLevel: string }>(
      Prisma.sql`SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = ${publication}) AS "isThere", current_setting('wal_level') AS "walLevel"`,
    );
    const { isThere, walLevel } = rows[0]!;
    const quoted = pg.escapeIdentifier(publication);
    if (!isThere) await client.query(`CREATE PUBLICATION ${quoted} FOR TABLE ${added.join(', ')}`);
    else if (added.length > 0) await client.query(`ALTER PUBLICATION ${quoted} ADD TABLE ${added.join(', ')}`);
    await client.query('COMMIT');
    return { tables: found.map(({ name }) => name), added, walLevel, isPooled: session === 'pooled' };
  });
}

async function findTables(client: pg.Client, publication: string, tables: readonly string[]): Promise<Found[]> {
  const { rows } = await client.query<Found>(
    Prisma.sql`SELECT format('%I.%I', 'mirror', t) AS name, c.oid IS NOT NULL AS "isThere", c.relreplident = 'n' AS "lacksIdentity",
       EXISTS (SELECT FROM pg_publication_tables p WHERE p.pubname = ${publication} AND p.schemaname = 'mirror' AND p.tablename = t) AS "isPublished"
     FROM unnest(${tables}::text[]) AS t LEFT JOIN pg_class c ON c.relname = t AND c.relnamespace = to_regnamespace('mirror') ORDER BY t`,
  );
  return rows;
}
