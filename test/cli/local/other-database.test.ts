import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { emptyDatabase } from '../../support/database.js';
import { runMuster } from '../run-muster.js';

// Commands that read by DATABASE_URL, on a subscriber and on a database that has nothing of Muster.

let subscriber: { url: string; close(): Promise<void> };
let other: { url: string; close(): Promise<void> };
let folder: string;
beforeAll(async () => {
  [subscriber, other] = [await emptyDatabase(), await emptyDatabase()];
  const client = new pg.Client(subscriber.url);
  await client.connect();
  await client.query(`
    CREATE SCHEMA mirror;
    CREATE TABLE mirror.employees (
      environment text, company_id uuid, id text, data jsonb, first_seen_at timestamptz, changed_at timestamptz, deleted_at timestamptz,
      PRIMARY KEY (environment, company_id, id))`);
  await client.end();
  folder = mkdtempSync(join(tmpdir(), 'muster-other-'));
});
afterAll(async () => {
  await subscriber.close();
  await other.close();
  rmSync(folder, { recursive: true });
});

test.each([
  ['export', 'employees', '--format', 'parquet', '--output', 'FOLDER/employees.parquet'],
  ['export', 'employees', '--raw', '--format', 'ndjson', '--output', '-'],
  ['export', 'employees', '--since', '0', '--format', 'csv', '--output', 'FOLDER/employees.csv'],
  ['dbt', 'init', 'FOLDER/package'],
  ['publish'],
  ['rotate-keys'],
])('%s %s says what is missing, and leaves nothing', async (...command) => {
  const args = command.map((arg) => arg.replace('FOLDER', folder));
  const run = (url: string) =>
    runMuster(args, { DATABASE_URL: url, MUSTER_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}` });
  expect(await run(subscriber.url)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /^muster: The database "\w+" has the lists of schema mirror, but not schema muster.*subscriber[^\n]*\n$/,
    ),
  });
  expect(await run(other.url)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /^muster: The database "\w+" is not Muster's: it has neither schema muster nor schema mirror[^\n]*\n$/,
    ),
  });
  expect(readdirSync(folder)).toEqual([]);
});
