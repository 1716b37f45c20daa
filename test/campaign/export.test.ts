import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Manifest } from '../../src/warehouse/export/export-resource.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { startNode } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { asText, partedColumns } from '../warehouse/column-texts.js';
import { makeGadgets } from '../warehouse/gadgets.js';

const RECORDS = Number(process.env['EXPORT_RECORDS'] ?? 1_000_000);
const KILLS = Number(process.env['EXPORT_KILLS'] ?? 10);
/** Of an export that is killed: its moments are shares of the file, however large it is. */
const KILLED_RECORDS = Math.min(RECORDS, 150_000);
const RSS_LIMIT_MB = 350;

const MUSTER = fileURLToPath(new URL('../../bin/muster', import.meta.url));
const TELL_MEMORY = `data:text/javascript,process.on('exit',()=>process.stderr.write('peak '+process.resourceUsage().maxRSS+' kB'))`;

let database: TestDatabase;
let smaller: TestDatabase;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-export-'));
  [database, smaller] = [await testDatabase(), await testDatabase()];
  await makeGadgets(database.db.pool, RECORDS);
  await database.db.pool.query('ANALYZE');
  await makeGadgets(smaller.db.pool, KILLED_RECORDS);
}, 600_000);
afterAll(async () => {
  await database.close();
  await smaller.close();
  rmSync(folder, { recursive: true });
});

function start(format: string, path: string, { url } = database) {
  return startNode(['--import', TELL_MEMORY, MUSTER, 'export', 'gadgets', '--format', format, '--output', path], {
    DATABASE_URL: url,
    MUSTER_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    MUSTER_HOME: folder,
  });
}

async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) hash.update(part as Buffer);
  return hash.digest('hex');
}

const manifestOf = (path: string): Manifest => JSON.parse(readFileSync(`${path}.manifest.json`, 'utf8'));

/** One hash for each of a few hundred groups of rows, made of every value of theirs. */
const hashes = (texts: readonly string[], from: string, collation = '') => `
  SELECT left(id, 4) AS part, md5(string_agg(h, '' ORDER BY id ${collation})) AS hash
  FROM (SELECT id, md5(concat_ws('|', ${texts.map((text) => `coalesce(${text}, 'none')`).join(', ')})) AS h FROM ${from}) AS r
  GROUP BY 1 ORDER BY (left(id, 4)) ${collation}`;

test(`${RECORDS} rows as Parquet are the view to the digit, in little memory`, async () => {
  const path = join(folder, 'gadgets.parquet');
  const running = start('parquet', path);
  expect(await running.exit, running.stderr).toEqual({ code: 0, signal: null });
  const peak = Number(/peak (\d+) kB/.exec(running.stderr)![1]) / 1_024;
  console.error(`${RECORDS} rows as Parquet: ${statSync(path).size} bytes, peak of ${Math.round(peak)} MB`);
  expect(peak).toBeLessThan(RSS_LIMIT_MB);
  const manifest = manifestOf(path);
  expect(manifest).toMatchObject({ rows: RECORDS, sha256: await sha256(path) });

  const { own } = partedColumns(manifest, new Set());
  const duck = await DuckDBInstance.create(':memory:');
  const connection = await duck.connect();
  const found = await connection.runAndReadAll(hashes(own.map(asText.duck), `'${path}'`));
  const expected = await database.db.pool.query({
    text: hashes(own.map(asText.postgres), 'warehouse.gadgets', 'COLLATE "C"'),
    rowMode: 'array',
  });
  expect(found.getRowsJson()).toEqual(expected.rows);
  connection.closeSync();
  duck.closeSync();
});

test.each(['csv', 'ndjson'])(`${RECORDS} rows as %s take little memory`, async (format) => {
  const path = join(folder, `gadgets.${format}`);
  const running = start(format, path);
  expect(await running.exit, running.stderr).toEqual({ code: 0, signal: null });
  const peak = Number(/peak (\d+) kB/.exec(running.stderr)![1]) / 1_024;
  console.error(`${RECORDS} rows as ${format}: ${statSync(path).size} bytes, peak of ${Math.round(peak)} MB`);
  expect(peak).toBeLessThan(RSS_LIMIT_MB);
  expect(manifestOf(path)).toMatchObject({ rows: RECORDS, sha256: await sha256(path) });
});

/** From before the first byte to just before the end, where the names are given. */
test(`killed at ${KILLS} moments, it never leaves half a file under the final name`, async () => {
  const where = mkdtempSync(join(folder, 'killed-'));
  const path = join(where, 'gadgets.ndjson');
  expect(await start('ndjson', path, smaller).exit).toEqual({ code: 0, signal: null });
  const bytes = statSync(path).size;
  for (const file of readdirSync(where)) rmSync(join(where, file));
  const written = () =>
    readdirSync(where)
      .filter((name) => name.endsWith('.part'))
      .map((name) => statSync(join(where, name)).size);
  for (let n = 0; n < KILLS; n += 1) {
    const running = start('ndjson', path, smaller);
    const until = (bytes * n) / (KILLS - 1 || 1);
    // What an earlier one left is removed at the start; the last moment may come after the end.
    const isReached = () => (written().length === 1 && written()[0]! >= until) || existsSync(path);
    await waitFor(isReached, { what: `${until} bytes`, timeoutMs: 600_000 });
    running.kill('SIGKILL');
    await running.exit;
    if (existsSync(path)) {
      expect(manifestOf(path)).toMatchObject({ rows: KILLED_RECORDS, sha256: await sha256(path) });
      rmSync(path);
      rmSync(`${path}.manifest.json`);
    }
  }
  expect(await start('ndjson', path, smaller).exit).toEqual({ code: 0, signal: null });
  expect(readdirSync(where).toSorted()).toEqual([
    'gadgets.ndjson',
    'gadgets.ndjson.manifest.json',
    'gadgets.ndjson.manifest.jws',
  ]);
});
