import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { removeOldChanges } from '../../src/db/tables/change-batches.js';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource, type Manifest } from '../../src/warehouse/export/export-resource.js';
import type { ExportRequest } from '../../src/warehouse/export/source.js';
import { onboard, openWalk, write } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'muster-export-'));
  database = await testDatabase();
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

interface Exported {
  readonly manifest: Manifest;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

async function exported(request: Partial<ExportRequest> = {}): Promise<Exported> {
  const path = join(folder, 'out.ndjson');
  const manifest = await exportResource({
    db: database.db,
    request: { resource: 'employees', isRaw: true, ...request },
    format: 'ndjson',
    destination: await openFileDestination(path),
  });
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
  return { manifest, rows: lines.map((line) => JSON.parse(line)) };
}

const record = (id: string, value: number) => `{"id":"${id}","value":${value}.10}`;

test('the changes since an export bring what was loaded up to date, each record once', async () => {
  const { db } = database;
  const company = await onboard(db);
  // As a loader has them: by key.
  const loaded = new Map<unknown, unknown>();
  let seq = 0;
  const load = async () => {
    const { manifest, rows } = await exported({ since: String(seq) });
    expect(manifest).toMatchObject({ since: seq, rows: rows.length });
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    for (const { id, op, data } of rows) {
      if (op === 'delete') loaded.delete(id);
      else loaded.set(id, data);
    }
    seq = manifest.seq;
    return rows;
  };
  const ops = (rows: Exported['rows']) => Object.fromEntries(rows.map(({ id, op }) => [id, op]));
  const mirrored = async () => new Map((await exported()).rows.map(({ id, data }) => [id, data]));

  const walk = await openWalk(db, company);
  await write(
    db,
    walk,
    Array.from({ length: 20 }, (_, n) => record(`e${n}`, n)),
    { newFrom: 0 },
  );
  expect(ops(await load())).toMatchObject({ e0: 'insert', e19: 'insert' });
  expect(loaded).toEqual(await mirrored());

  expect(await load()).toEqual([]);

  // Changed twice in one batch of few changes, gone, and gone and back.
  const next = await openWalk(db, company);
  await write(db, next, [record('e1', 100)]);
  await write(db, next, [record('e1', 101), record('new', 1)], { number: 1 });
  await db.prisma.$executeRaw`UPDATE mirror.employees SET deleted_at = now() WHERE id IN ('e2', 'e3')`;
  await db.prisma.$executeRaw`
    WITH batch AS (
      INSERT INTO muster.change_batches (environment, company_id, resource, size, changed_at)
      VALUES (${company.environment}, ${company.companyId}::uuid, 'employees', 2, now()) RETURNING id)
    INSERT INTO muster.changes (batch_id, position, record_id, op)
    SELECT id, p, 'e' || p + 2, 'delete' FROM batch, generate_series(0, 1) p`;
  await write(db, await openWalk(db, company), [record('e3', 33)]);
  const rows = await load();
  expect(ops(rows)).toEqual({ e1: 'update', e2: 'delete', e3: 'restore', new: 'insert' });
  expect(rows.find(({ id }) => id === 'e2')).toMatchObject({ environment: 'test', company_id: company.companyId, data: null });
  expect(loaded).toEqual(await mirrored());
  expect(loaded.get('e1')).toEqual({ id: 'e1', value: 101.1 });
});

test('rows, lists and place in the feed are of one instant, whatever is written during the export', async () => {
  const { db } = database;
  const company = await onboard(db, 'production');
  await openWalk(db, company);
  const writer = await db.pool.connect();
  const over = new AbortController();
  const writing = (async () => {
    for (let n = 1; !over.signal.aborted; n += 1) {
      await writer.query(`
        BEGIN;
        INSERT INTO mirror.employees (environment, company_id, id, data) VALUES ('production', '${company.companyId}', 'n${n}', '{}');
        UPDATE muster.lists SET records = ${n} WHERE company_id = '${company.companyId}';
        UPDATE muster.change_sequence SET next_seq = next_seq + 1;
        COMMIT`);
    }
  })();
  const begin = (await exported({ companyId: company.companyId })).manifest;
  for (let round = 0; round < 20; round += 1) {
    const { manifest } = await exported({ companyId: company.companyId });
    expect(manifest.lists).toMatchObject([{ company_id: company.companyId, records: manifest.rows }]);
    expect(manifest.seq - manifest.rows).toBe(begin.seq - begin.rows);
  }
  over.abort();
  await writing;
  writer.release();
});

test('with typed columns the op and the seq have names that no key has', async () => {
  const { db } = database;
  await db.pool.query(`CREATE SCHEMA IF NOT EXISTS warehouse`);
  await db.pool.query(`CREATE TABLE mirror.gizmos (LIKE mirror.employees INCLUDING ALL)`);
  await db.pool.query(
    `CREATE VIEW warehouse.gizmos AS SELECT environment, company_id, id, data->>'op' AS op, changed_at AS _changed_at
     FROM mirror.gizmos WHERE deleted_at IS NULL`,
  );
  const company = await onboard(db);
  await write(db, await openWalk(db, company, 'gizmos'), ['{"id":"d1","op":"theirs"}']);
  const { manifest, rows } = await exported({ resource: 'gizmos', isRaw: false, since: '0' });
  expect(rows).toMatchObject([{ id: 'd1', op: 'theirs', _op: 'insert', _seq: manifest.seq }]);
  expect(manifest.columns.map(({ name }) => name)).toEqual([
    'environment',
    'company_id',
    'id',
    '_op',
    '_seq',
    'op',
    '_changed_at',
  ]); // prettier-ignore
});

test('changes that are no longer kept, or were never made, are refused, and nothing is left', async () => {
  const { db } = database;
  await expect(exported({ since: '999999999' })).rejects.toMatchObject({ code: 'invalid_request' });
  await db.prisma.$executeRaw`UPDATE muster.change_batches SET changed_at = now() - interval '40 days'`;
  const company = await onboard(db);
  await write(db, await openWalk(db, company), [record('late', 1)]);
  const { manifest } = await exported();
  await removeOldChanges(db, 30);
  for (const since of ['0', '5']) {
    await expect(exported({ since })).rejects.toMatchObject({
      code: 'changes_expired',
      message: expect.stringMatching(/without --since/),
    });
  }
  expect((await exported({ since: String(manifest.seq) })).rows).toEqual([]);
  expect(readdirSync(folder).toSorted()).toEqual(['out.ndjson', 'out.ndjson.manifest.json']);
});
