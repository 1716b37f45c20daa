import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';

const MIGRATIONS = new URL('../../../prisma/migrations/', import.meta.url);

/** A migration of this version. */
export interface Migration {
  name: string;
  sql: string;
  /** Hex sha256 of the file. */
  checksum: string;
}

let names: Promise<readonly string[]> | undefined;

/**
 * Names of the migrations that this version knows, in the order in which they are applied. The folder is read once, at the start of the process: an upgrade may
 * replace it under a process, whose version stays the same.
 */
export function migrationNames(): Promise<readonly string[]> {
  return (names ??= readNames());
}

async function readNames(): Promise<string[]> {
  const entries = await readdir(MIGRATIONS, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .toSorted();
}

/** Reads these migrations, in the same order. */
export async function readMigrations(): Promise<Migration[]> {
  return Promise.all(
    (await migrationNames()).map(async (name) => {
      const sql = await readFile(new URL(`${name}/migration.sql`, MIGRATIONS), 'utf8');
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    }),
  );
}
