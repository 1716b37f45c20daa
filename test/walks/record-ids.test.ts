import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { forgetAgain, forgetRecord, unsuppress } from '../../src/erasure/forget.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource } from '../../src/warehouse/export/export-resource.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { occurrencesOf } from '../support/occurrences.js';
import { testSuppressions } from '../support/suppressions.js';
import { learn } from '../warehouse/warehouse-fixture.js';
import { endpointsOf, feed } from './company-fixture.js';
import { foreignHarness } from './sync-harness.js';

// Records that are known by a member within another one, or by several members together.

const pager = { style: 'skip-take', in: 'query', size: 3 };
const endpoints = endpointsOf({
  people: {
    method: 'GET',
    path: '/{company_id}/people',
    pager,
    id: ['uid', 'attributes.id.value'],
    privacy: { 'attributes.note': 'drop', 'attributes.email': 'mask' },
  },
  stints: {
    method: 'GET',
    path: '/{company_id}/people/{id}/stints',
    parent: 'people',
    pager,
    id: [['kind', 'from.date']],
  },
  roles: { method: 'GET', path: '/{company_id}/roles', pager, id: ['id', ['userId', 'start.date']] },
});
const catalogue: Catalogue = { endpoints, get: (resource) => endpoints.find((endpoint) => endpoint.resource === resource) };

const PEOPLE = ['anna', 'b/ä', 'c\\d', '12345678901234567890'];
const personOf = (id: string) => ({ attributes: { note: `of ${id}`, email: 'x@y', id: { value: id } } });
const STINTS = [1, 2, 3, 4].map((n) => ({ kind: 'a/b', from: { date: `2026-0${n}-01` } }));
/** Two pairs that a mere slash between them would make one. */
const ROLES = [
  { userId: 'a/b', start: { date: 'c' } },
  { userId: 'a', start: { date: 'b/c' } },
  { userId: 7, 'start.date': 1.5 },
  { userId: 'a', start: { date: 'c' } },
];
const ROLE_IDS = ['a\\/b/c', 'a/b\\/c', '7/1.5', 'a/c'].toSorted();

let database: TestDatabase;
let service: Server;
let url: URL;
let harness: ReturnType<typeof foreignHarness>;
let lists: Record<string, readonly object[]>;
let asked: string[];
let company: CompanyKey;

beforeAll(async () => {
  database = await testDatabase();
  await ensureMirrorTables(database.db, catalogue);
  service = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://service');
    const [, , list = '', parent, children] = pathname.split('/');
    if (parent !== undefined && children !== undefined) asked.push(parent);
    const all = lists[children ?? list] ?? [];
    const skip = Number(searchParams.get('skip'));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ totalRecords: all.length, data: all.slice(skip, skip + Number(searchParams.get('take'))) }));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => service.once('listening', resolve));
  url = new URL(`http://127.0.0.1:${(service.address() as AddressInfo).port}`);
});
afterAll(async () => {
  service.close();
  await database.close();
});
beforeEach(async () => {
  lists = { people: PEOPLE.map(personOf), stints: STINTS, roles: ROLES };
  asked = [];
  harness = foreignHarness(database.db, url, endpoints);
  company = await harness.connect(randomUUID());
});
afterEach(() => harness.close());

async function idsOf(resource: string, condition = 'deleted_at IS NULL'): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ id: string }>(
    `SELECT id FROM mirror.${resource} WHERE company_id = $1 AND ${condition}`,
    [company.companyId],
  );
  return rows.map(({ id }) => id).toSorted();
}
const stintIds = PEOPLE.flatMap((id) => STINTS.map(({ from }) => `${encodeURIComponent(id)}/a\\/b/${from.date}`)).toSorted();
const forget = (resource: string, id: string) =>
  inTransaction(database.db, async (tx) => {
    const { rows } = await forgetRecord(
      tx,
      { catalogue, suppressions: testSuppressions },
      { list: { ...company, resource }, id },
    );
    return rows;
  });

test('are mirrored, compared, verified and in the feed under these ids', async () => {
  const first = await harness.sync(company);
  expect(first.walks.map(({ verified, inserted }) => [verified, inserted])).toEqual([
    [true, PEOPLE.length],
    [true, ROLES.length],
    [true, stintIds.length],
  ]);
  expect([await idsOf('people'), await idsOf('stints'), await idsOf('roles')]).toEqual([PEOPLE.toSorted(), stintIds, ROLE_IDS]);
  expect(new Set(asked)).toEqual(new Set(PEOPLE.map(encodeURIComponent)));

  lists['people'] = PEOPLE.slice(1).map(personOf);
  lists['roles'] = ROLES.map((role, n) => (n === 1 ? { ...role, title: 'new' } : role));
  const second = await harness.sync(company, { mode: 'full' });
  expect(second.walks).toMatchObject([
    { verified: true, unchanged: 3, deleted: 1 },
    { verified: true, unchanged: 3, updated: 1 },
    { verified: true, unchanged: stintIds.length - STINTS.length, deleted: STINTS.length },
  ]);
  await stampChanges(database.db);
  const changed = (await feed(database.db, company.companyId)).filter(({ op }) => op !== 'insert');
  expect(changed.map(({ resource, id, op }) => [resource, id, op]).slice(0, 2)).toEqual([
    ['people', 'anna', 'delete'],
    ['roles', 'a/b\\/c', 'update'],
  ]);
  for (const { verify } of (await harness.verify(company)).walks)
    expect(verify).toMatchObject({ missing: 0, extra: 0, different: 0, changed_since: 0 });
  lists['roles'] = ROLES.slice(1);
  expect((await harness.verify(company, { resources: ['roles'] })).walks[0]!.verify).toMatchObject({ compared: 3 });
});

test('a record that lacks one of several members has no id', async () => {
  lists['roles'] = [...ROLES, { userId: 'a', start: { date: null } }, { userId: 'b' }];
  const { walks } = await harness.sync(company, { resources: ['roles'] });
  expect(walks[0]).toMatchObject({ verified: false, unverified_reason: 'rejected_records', received: 6, inserted: 4 });
});

test('are exported', async () => {
  await harness.sync(company);
  await stampChanges(database.db);
  await learn(database.db);
  const folder = mkdtempSync(join(tmpdir(), 'muster-ids-'));
  try {
    const path = join(folder, 'roles.ndjson');
    const request = { resource: 'roles', companyId: company.companyId, environment: 'test' as const };
    await exportResource({ db: database.db, request, format: 'ndjson', destination: await openFileDestination(path) });
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { id: string }).id).toSorted()).toEqual(ROLE_IDS);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each([
  ['people', 'b/ä', PEOPLE.length, [{ received: 4 }, {}, { received: 12, deleted: 0 }]],
  ['people', '12345678901234567890', PEOPLE.length, [{ received: 4 }, {}, { received: 12, deleted: 0 }]],
  ['roles', 'a/b\\/c', ROLES.length, [{}, { received: 4 }, { received: 16 }]],
  ['roles', '7/1.5', ROLES.length, [{}, { received: 4 }, { received: 16 }]],
  ['stints', 'c%5Cd/a\\/b/2026-02-01', stintIds.length, [{}, {}, { received: 16 }]],
])('%s %s is forgotten, stays away, and comes back', async (resource, id, count, walks) => {
  await harness.sync(company);
  const list = { ...company, resource };
  expect(await forget(resource, id)).toBe(resource === 'people' ? 1 + STINTS.length : 1);
  for (let night = 0; night < 2; night += 1) {
    const run = await harness.sync(company, { mode: 'full' });
    expect(run.walks).toMatchObject(walks.map((walk) => ({ verified: true, inserted: 0, ...walk })));
    expect(await idsOf(resource)).toHaveLength(count - 1);
    expect(await idsOf(resource)).not.toContain(id);
  }
  for (const { verify } of (await harness.verify(company)).walks)
    expect(verify).toMatchObject({ missing: 0, extra: 0, different: 0 });
  await inTransaction(database.db, (tx) => unsuppress(tx, { catalogue, suppressions: testSuppressions }, { list, id }));
  await harness.sync(company, { mode: 'full' });
  expect(await idsOf(resource)).toContain(id);
});

test('a row of a forgotten record that a backup brought back is erased again', async () => {
  await harness.sync(company);
  const kept = await database.db.pool.query<Record<string, unknown>>('SELECT * FROM mirror.roles WHERE company_id = $1', [
    company.companyId,
  ]);
  await forget('roles', 'a/b\\/c');
  const brought = kept.rows.find(({ id }) => id === 'a/b\\/c')!;
  const names = Object.keys(brought);
  await database.db.pool.query(
    `INSERT INTO mirror.roles (${names.join(', ')}) VALUES (${names.map((_, n) => `$${n + 1}`).join(', ')})`,
    names.map((name) => brought[name]),
  );
  const again = () =>
    inTransaction(database.db, (tx) =>
      forgetAgain(tx, { catalogue, suppressions: testSuppressions }, { ...company, resource: 'roles' }),
    );
  expect([await again(), await again()]).toEqual([1, 0]);
  expect(await idsOf('roles', 'TRUE')).toEqual(ROLE_IDS.filter((id) => id !== 'a/b\\/c'));
});

test('rows under an id of several members go with a record that has come to be known by another', async () => {
  lists['roles'] = ROLES.map((role, n) => ({ ...role, uid: `u${n}` }));
  await harness.sync(company, { resources: ['roles'] });
  await rekeyList(database.db, { ...company, resource: 'roles' });
  const others = endpointsOf({
    roles: { method: 'GET', path: '/{company_id}/roles', pager, id: ['uid', ['userId', 'start.date']] },
  });
  const renamed = foreignHarness(database.db, url, others);
  await renamed.sync(company);
  expect(await idsOf('roles', 'TRUE')).toHaveLength(2 * ROLES.length);
  const list = { ...company, resource: 'roles' };
  const byUid: Catalogue = { endpoints: others, get: () => others[0] };
  const forgotten = await inTransaction(database.db, (tx) =>
    forgetRecord(tx, { catalogue: byUid, suppressions: testSuppressions }, { list, id: 'u1' }),
  );
  expect(forgotten).toEqual({ rows: 2, isFound: true });
  expect(await idsOf('roles', 'TRUE')).toEqual([...ROLE_IDS.filter((id) => id !== 'a/b\\/c'), 'u0', 'u2', 'u3'].toSorted());
  await renamed.close();
});

test('what privacy drops and masks beside an id stays out of the mirror', async () => {
  await harness.sync(company, { resources: ['people'] });
  expect(await occurrencesOf(database.db, 'of anna')).toEqual([]);
  const { rows } = await database.db.pool.query<{ data: object }>(
    `SELECT data FROM mirror.people WHERE company_id = $1 AND id = 'anna'`,
    [company.companyId],
  );
  expect(rows).toEqual([{ data: { attributes: { email: '***', id: { value: 'anna' } } } }]);
});
