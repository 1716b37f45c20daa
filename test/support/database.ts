import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { inject } from 'vitest';
import { type Database, openDatabase } from '../../src/db/connection/database.js';
import { waitFor } from './wait-for.js';

export interface TestDatabase {
  url: string;
  db: Database;
  /** Closes `db` and drops the database. Throws when anything else still has a connection: a leaked pool or client. */
  close(): Promise<void>;
}

/** A database of its own with every migration applied. One a test file, in beforeAll: it takes some 50 ms. */
export async function testDatabase(): Promise<TestDatabase> {
  const { url, close } = await cloneDatabase(inject('postgres').template);
  const db = openDatabase({ url });
  return {
    url,
    db,
    close: async () => {
      await Promise.race([db.close(), sleep(5_000, undefined, { ref: false })]); // for ever, if a client was never released
      await close();
    },
  };
}

/** The same without any table, for what makes tables itself. */
export function emptyDatabase(): Promise<{ url: string; close(): Promise<void> }> {
  return cloneDatabase('template0');
}

async function cloneDatabase(template: string): Promise<{ url: string; close(): Promise<void> }> {
  const name = `muster_test_${randomBytes(6).toString('hex')}`;
  // Copied as files, a database takes a third of the processor time of one whose every page goes through the journal.
  await asAdmin((admin) => admin.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`));
  const url = new URL(inject('postgres').url);
  url.pathname = name;
  return {
    url: url.href,
    close: () =>
      asAdmin(async (admin) => {
        const connections = () =>
          admin
            .query<{ line: string }>(
              `SELECT application_name || ': ' || left(query, 200) AS line FROM pg_stat_activity
               WHERE datname = $1 AND backend_type = 'client backend'`,
              [name],
            )
            .then(({ rows }) => rows.map((row) => row.line));
        // A connection that was closed is still listed for a moment.
        const leaked = await waitFor(async () => (await connections()).length === 0).then(() => [], connections);
        await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
        if (leaked.length > 0) throw new Error(`Connections were left open:\n${leaked.join('\n')}`);
      }),
  };
}

async function asAdmin(work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const admin = new pg.Client(inject('postgres').url);
  await admin.connect();
  await work(admin).finally(() => admin.end());
}
