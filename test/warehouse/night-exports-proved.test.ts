import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NightExports } from '../../src/warehouse/export/night-exports.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { makeGadgets } from './gadgets.js';

const NIGHT = { night: '2026-11-24', environment: 'test', resource: 'gadgets' } as const;

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await testDatabase();
  await makeGadgets(database.db.pool, 4);
  folder = mkdtempSync(join(tmpdir(), 'muster-night-'));
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

/** One attempt at the export of the night. */
async function attempt(requiresProofs: boolean) {
  const { db } = database;
  await db.pool.query('UPDATE muster.night_exports SET next_attempt_at = now()');
  const exports = { to: folder, format: 'ndjson', requiresProofs } as const;
  const endpoints = [{ resource: 'gadgets' }] as never;
  const signManifest = async (text: string) => `signed ${text.length}`;
  const parts = { db, exports, catalogue: { endpoints }, signManifest, logger: pino({ level: 'silent' }) };
  await new NightExports(parts).export(NIGHT, new AbortController().signal);
  const { rows } = await db.pool.query<{ error: { code: string; message: string } | null; output: string | null }>(
    'SELECT last_error AS error, output FROM muster.night_exports',
  );
  return rows[0]!;
}

test('a night with a list that was never proved is not exported where proofs are required, and is once it is proved', async () => {
  const { db } = database;
  const { companyId } = await db.prisma.connection.findFirstOrThrow({ where: { environment: 'test' } });
  await db.pool.query(`INSERT INTO muster.nights (night, environment, began_at, due, finished, succeeded, failed, cancelled, lists, verified, unverified, inserted, updated, deleted, settled)
     VALUES ('2026-11-24', 'test', now(), 1, 1, 1, 0, 0, 2, 1, 1, 0, 0, 0, false)`);
  await db.pool.query(`INSERT INTO muster.night_exports (night, environment, resource) VALUES ('2026-11-24', 'test', 'gadgets')`);
  const refused = await attempt(true);
  expect(refused).toMatchObject({ output: null, error: { code: 'lists_unproved' } });
  expect(refused.error!.message).toContain(`test ${companyId} (never proved)`);
  expect(readdirSync(join(folder, 'test', 'gadgets'))).toEqual([]);

  await db.prisma.list.updateMany({ data: { lastVerifiedAt: new Date() } });
  const { output, error } = await attempt(true);
  expect(error).toBeNull();
  expect(['', '.manifest.json', '.manifest.jws'].map((suffix) => existsSync(`${output}${suffix}`))).toEqual([true, true, true]);
});
