import pg from 'pg';
import { MusterError } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import { explainConnectFailure } from '../connection/connect-failure.js';
import { connectionOptions, sessionOptions } from '../connection/connection-options.js';
import { DatabaseClient } from '../connection/database-client.js';
import { prepareSession, type Session } from '../connection/session.js';
import { sqlState } from '../connection/sql-state.js';

/**
 * Executes, in one transaction, the statements that `statementsFor` gives for a role, by its quoted name. Throws `invalid_configuration` if
 * there is no such role, or if the user of `url` may not grant.
 */
export async function asGrantor(
  url: string,
  role: string,
  statementsFor: (client: pg.Client, grantee: string) => Promise<readonly string[]>,
): Promise<void> {
  const mayNot = 'may not grant rights on these tables; run the command as their owner';
  await asOwner(url, { application: 'muster migrate', mayNot }, async (client) => {
    const { rows: roles } = await client.query<{ quoted: string }>(
      Prisma.sql`SELECT quote_ident(rolname) AS quoted FROM pg_roles WHERE rolname = ${role}`,
    );
    if (!roles[0]) {
      throw new MusterError(
        'invalid_configuration',
        `There is no role ${role}. Make one first: CREATE ROLE ${pg.escapeIdentifier(role)} LOGIN PASSWORD '…'`,
      );
    }
    const statements = await statementsFor(client, roles[0].quoted);
    await client.query(`BEGIN; ${statements.join('; ')}; COMMIT`);
  });
}

/** Runs the work on a connection of its own. `mayNot` completes the sentence "the user …" for a user without the rights: `invalid_configuration`. */
export async function asOwner<T>(
  url: string,
  { application, mayNot }: { readonly application: string; readonly mayNot: string },
  work: (client: pg.Client, session: Session) => Promise<T>,
): Promise<T> {
  const client = new DatabaseClient(connectionOptions(url, application));
  client.on('error', () => {}); // the query under way reports it
  try {
    await client.connect();
    return await work(client, await prepareSession(client, sessionOptions(url)));
  } catch (error) {
    if (sqlState(error) === '42501')
      throw new MusterError('invalid_configuration', `DATABASE_URL: the user ${mayNot}`, { cause: error });
    throw explainConnectFailure(error, url);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Quoted names of the objects in these schemas that belong to this user. Objects of other owners are left alone. */
export async function allRelations(
  client: pg.Client,
  schemas: readonly string[],
): Promise<{ tables: readonly string[]; sequences: readonly string[] }> {
  const { rows } = await client.query<{ name: string; sequence: boolean }>(
    Prisma.sql`SELECT format('%I.%I', nspname, relname) AS name, relkind = 'S' AS sequence FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
     WHERE nspname = ANY(${schemas}) AND relkind IN ('r', 'p', 'v', 'S') AND pg_has_role(relowner, 'USAGE')`,
  );
  const namesOf = (sequence: boolean) => rows.filter((found) => found.sequence === sequence).map(({ name }) => name);
  return { tables: namesOf(false), sequences: namesOf(true) };
}
