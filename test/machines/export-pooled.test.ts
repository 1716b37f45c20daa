import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { startMuster } from '../support/process.js';
import { makeGadgets } from '../warehouse/gadgets.js';
import { type Pooler, startPgBouncer } from './pgbouncer.js';

let database: TestDatabase;
let pooler: Pooler;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-export-'));
  database = await testDatabase();
  pooler = await startPgBouncer(database.url, 'transaction', { default_pool_size: '3' });
  await makeGadgets(database.db.pool, 500);
});
afterAll(async () => {
  await pooler.close();
  await database.close();
  rmSync(folder, { recursive: true });
});

async function exported(url: string, format: string, name: string): Promise<Buffer> {
  const path = join(folder, name);
  const running = startMuster(['export', 'gadgets', '--format', format, '--output', path], {
    DATABASE_URL: url,
    MUSTER_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    MUSTER_HOME: folder,
  });
  expect(await running.exit, running.stderr).toEqual({ code: 0, signal: null });
  return readFileSync(path);
}

test('through a pool of transactions, with other dates and times by default, a file has the same bytes', async () => {
  const formats = ['parquet', 'csv', 'ndjson'];
  const direct = [];
  for (const format of formats) direct.push(await exported(database.url, format, 'direct'));
  const name = new URL(database.url).pathname.slice(1);
  await database.db.pool.query(
    `ALTER DATABASE ${name} SET TimeZone = 'Asia/Yekaterinburg'; ALTER DATABASE ${name} SET DateStyle = 'German'`,
  );
  for (const [n, format] of formats.entries()) {
    const pooled = await exported(pooler.through(database.url), format, 'pooled');
    expect(pooled.equals(direct[n]!), format).toBe(true);
  }
});
