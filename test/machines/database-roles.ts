import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterEach, inject } from 'vitest';
import { emptyDatabase } from '../support/database.js';
import { startMuster } from '../support/process.js';

/** Encryption keys for what is started here. */
export const KEYS = `k:${randomBytes(32).toString('base64')}`;
const PASSWORD = 'a-password';
/** Run after each test, the last one first. */
export const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** Runs a statement, as the role of the address. */
export async function asAdmin(url: string, statement: string): Promise<void> {
  const admin = new pg.Client(url);
  await admin.connect();
  await admin.query(statement).finally(() => admin.end());
}

/** A role without any right, under a name that must be quoted. */
export async function makeRole(): Promise<string> {
  const role = `Muster-${randomBytes(4).toString('hex')}`;
  await asAdmin(inject('postgres').url, `CREATE ROLE "${role}" LOGIN PASSWORD '${PASSWORD}'`);
  cleanups.push(() => asAdmin(inject('postgres').url, `DROP ROLE "${role}"`));
  return role;
}

/** The address, as this role. */
export function as(role: string, url: string): string {
  const parsed = new URL(url);
  parsed.username = role;
  parsed.password = PASSWORD;
  return parsed.href;
}

/** A database that an ordinary role owns. Its roles may be dropped once it is gone. */
export async function ownedDatabase(): Promise<{ url: string; owner: string }> {
  const owner = await makeRole();
  const { url, close } = await emptyDatabase();
  cleanups.push(close);
  await asAdmin(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} OWNER TO "${owner}"`);
  return { url, owner: as(owner, url) };
}

/** Runs a command of Muster to its end. */
export async function run(
  args: string[],
  env: Record<string, string>,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const muster = startMuster(args, { MUSTER_ENCRYPTION_KEYS: KEYS, LOG_LEVEL: 'error', ...env });
  const { code } = await muster.exit;
  return { code, stdout: muster.stdout, stderr: muster.stderr };
}
