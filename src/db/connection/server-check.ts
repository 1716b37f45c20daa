import type pg from 'pg';
import { MusterError } from '../../core/errors.js';

const OLDEST_SERVER = 150000;

/** Throws `invalid_configuration` where the server or the database is none that Muster can work with, with what to do. */
export async function requireUsableServer(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ version: number; encoding: string; name: string; standby: boolean }>(
    `SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
       quote_ident(current_database()) AS name, pg_is_in_recovery() AS standby`,
  );
  const { version, encoding, name, standby } = rows[0]!;
  if (version < OLDEST_SERVER) refuse(`PostgreSQL ${Math.floor(version / 10_000)} is too old, 15 or newer is needed`);
  if (encoding !== 'UTF8')
    refuse(
      `the database ${name} has the encoding ${encoding}, in which not every record can be kept; make another one: ` +
        "CREATE DATABASE muster ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0",
    );
  if (standby) refuse('the server is a standby, which only reads; name the primary');
}

function refuse(problem: string): never {
  throw new MusterError('invalid_configuration', `DATABASE_URL: ${problem}`);
}
