import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { removeOldChanges } from '../../src/db/tables/change-batches.js';
import { NightExports } from '../../src/warehouse/export/night-exports.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { onboard, openWalk, write } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await testDatabase();
  await ensureTypedViews(database.db, { endpoints: [{ resource: 'employees' }] } as never);
  folder = mkdtempSync(join(tmpdir(), 'muster-night-'));
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

const RECORDS = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { id: string; _op?: string });

/** The export of a night, with its file of changes. Returns the manifest of the full file. */
async function night(day: string) {
  const { db } = database;
  await db.pool.query(
    `INSERT INTO muster.nights (night, environment, began_at, due, finished, succeeded, failed, cancelled, lists, verified, unverified, inserted, updated, deleted, settled)
     VALUES ($1, 'test', now(), 1, 1, 1, 0, 0, 2, 1, 1, 0, 0, 0, false)`,
    [day],
  );
  await db.pool.query(`INSERT INTO muster.night_exports (night, environment, resource) VALUES ($1, 'test', 'employees')`, [day]);
  const exports = { to: folder, format: 'ndjson', layout: 'date', makesChanges: true } as const;
  const endpoints = [{ resource: 'employees' }] as never;
  const parts = { db, exports, catalogue: { endpoints }, signManifest: async () => 'signed', logger: pino({ level: 'silent' }) };
  await new NightExports(parts).export({ night: day, environment: 'test', resource: 'employees' }, new AbortController().signal);
  const at = join(folder, 'test', 'employees', `date=${day}`);
  const files = readdirSync(at)
    .filter((name) => name.endsWith('.ndjson'))
    .toSorted();
  const manifest = JSON.parse(readFileSync(join(at, 'employees.ndjson.manifest.json'), 'utf8'));
  return { at, files, manifest };
}

test('each night has a file of the changes since the night before, where there was one and the feed reaches it', async () => {
  const { db } = database;
  const company = await onboard(db);
  await write(db, await openWalk(db, company), ['{"id":"a"}', '{"id":"b"}'], { newFrom: 0 });
  const first = await night('2026-11-24');
  expect(first.files).toEqual(['employees.ndjson']);
  expect(first.manifest).toMatchObject({ rows: 2, changes: { file: null, reason: 'first_night' } });

  await write(db, await openWalk(db, company), ['{"id":"b","x":1}', '{"id":"c"}']);
  const second = await night('2026-11-25');
  expect(second.files).toEqual(['employees.changes.ndjson', 'employees.ndjson']);
  expect(second.manifest).toMatchObject({ rows: 3, changes: { file: 'employees.changes.ndjson', since: first.manifest.seq } });
  expect(RECORDS(join(second.at, 'employees.changes.ndjson')).map(({ id, _op }) => [id, _op])).toEqual([
    ['b', 'update'],
    ['c', 'insert'],
  ]);
  const changes = JSON.parse(readFileSync(join(second.at, 'employees.changes.ndjson.manifest.json'), 'utf8'));
  expect(changes).toMatchObject({ rows: 2, since: first.manifest.seq });
  expect(changes.seq).toBeGreaterThanOrEqual(second.manifest.seq);

  // A night later the feed has been cut after the number of the night before.
  await write(db, await openWalk(db, company), ['{"id":"d"}']);
  await night('2026-11-26').then(({ manifest }) => expect(manifest.changes.file).not.toBeNull());
  await db.prisma.$executeRaw`UPDATE muster.night_exports SET seq = 0 WHERE night = '2026-11-26'`;
  await db.prisma.$executeRaw`UPDATE muster.change_batches SET changed_at = now() - interval '40 days'`;
  await removeOldChanges(db, 30);
  const cut = await night('2026-11-27');
  expect(cut.files).toEqual(['employees.ndjson']);
  expect(cut.manifest).toMatchObject({ rows: 4, changes: { file: null, reason: 'changes_expired' } });
});
