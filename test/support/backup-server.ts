import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { pino } from 'pino';
import { openDatabase } from '../../src/db/connection/database.js';
import { migrate } from '../../src/db/schema/migrate.js';
import type { TestDatabase } from './database.js';
import { PostgresServer } from './postgres-server.js';
import { stockFolder, stockPrograms } from './stock-postgres.js';
import { waitFor } from './wait-for.js';

/** The PostgreSQL that the machine's packages installed, with several databases, and the programs that back them up and restore them. */
export class BackupServer {
  private constructor(readonly server: PostgresServer) {}

  static async start(): Promise<BackupServer> {
    return new BackupServer(await PostgresServer.start({ programs: stockPrograms() }));
  }

  /** The folder of pg_dump and pg_restore. */
  static get programs(): string {
    return stockFolder()!;
  }

  /** The address of a new and empty database. */
  async emptyPlace(): Promise<string> {
    const name = `muster_${randomBytes(4).toString('hex')}`;
    const admin = new pg.Client(this.server.url);
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name}`).finally(() => admin.end());
    const url = new URL(this.server.url);
    url.pathname = name;
    return url.href;
  }

  /** A new database with every migration applied. */
  async database(): Promise<TestDatabase> {
    const url = await this.emptyPlace();
    await migrate(url, pino({ level: 'silent' }));
    const db = openDatabase({ url });
    return { url, db, close: () => db.close() };
  }

  /** Tried again where a view was made anew while it was dumped, as when a list has a new member: pg_dump fails then. */
  async dump(url: string, file: string): Promise<void> {
    const dumped = () => run('pg_dump', '--format=custom', `--file=${file}`, url).then(() => true);
    await waitFor(dumped, { what: `${url} to be dumped`, intervalMs: 500 });
  }

  /** Into an empty database. */
  async restore(url: string, file: string): Promise<void> {
    await run('pg_restore', '--no-owner', '--exit-on-error', `--dbname=${url}`, file);
  }

  /** Drops what is there, in one transaction that is tried again while processes of Muster stand in its way. */
  async restoreInPlace(url: string, file: string): Promise<void> {
    const args = ['--clean', '--if-exists', '--no-owner', '--single-transaction', `--dbname=${url}`, file];
    await waitFor(() => run('pg_restore', ...args).then(() => true), { what: `${file} to be restored`, intervalMs: 500 });
  }
}

async function run(program: string, ...args: string[]): Promise<void> {
  await promisify(execFile)(join(BackupServer.programs, program), args);
}
