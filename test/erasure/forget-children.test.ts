import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { MusterError } from '../../src/core/errors.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { forgetRecord } from '../../src/erasure/forget.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { companyIdOf } from '../support/company-ids.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { occurrencesOf } from '../support/occurrences.js';
import { testSuppressions } from '../support/suppressions.js';
import { endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

// A list of people and a child list of theirs, served by the test itself: the parent's id is in every child's.

const size = 3;
const endpoints = endpointsOf({
  people: { method: 'GET', path: '/api/companies/{company_id}/people', pager: { style: 'skip-take', in: 'query', size } },
  notes: {
    method: 'GET',
    path: '/api/companies/{company_id}/people/{id}/notes',
    parent: 'people',
    pager: { style: 'skip-take', in: 'query', size },
  },
});
const catalogue: Catalogue = { endpoints, get: (resource) => endpoints.find((endpoint) => endpoint.resource === resource) };
const NAMES = ['anna', 'berit', 'carl/ä', 'dora', 'erik'];
const NOTES = 5;

let database: TestDatabase;
let harness: SyncHarness;
/** Whose notes are refused, and of whom the service sends a record that cannot be kept. */
let refused: string | undefined;
let spoiled: string | undefined;
let beforeRequest: ((request: ApiRequest) => Promise<unknown>) | undefined;
/** Of the company; ids differ from those of others, since all tables are looked through. */
let next = 0;
const idOf = (name: string) => `c${next}-${name}`;
const people = () => NAMES.map(idOf);

beforeAll(async () => {
  database = await testDatabase();
  await ensureMirrorTables(database.db, catalogue);
  const tokens = {
    get: async () => ({ reveal: () => 'a' }) as never,
    renew: async () => undefined as never,
    refused: async () => {},
  };
  harness = syncHarness(database.db, { url: new URL('http://127.0.0.1:9'), tokens }, endpoints, {
    respond,
    beforeRequest: async (request) => void (await beforeRequest?.(request)),
  });
});
afterAll(async () => {
  await harness.close();
  await database.close();
});

function respond({ path, query }: ApiRequest): string {
  const parent = /\/people\/([^/]+)\/notes$/.exec(path)?.[1];
  if (!/people/.test(path)) return '{"name":"Of the test"}';
  const of = parent === undefined ? undefined : decodeURIComponent(parent);
  if (of !== undefined && of === refused)
    throw new MusterError('service_error', `GET service${path} answered 500: the service failed`, { retryable: false });
  const all =
    of === undefined
      ? people().map((id) => (id === spoiled ? `{"id":"${id}","name":"\\u0000"}` : JSON.stringify({ id, name: `name of ${id}` })))
      : Array.from({ length: NOTES }, (_, n) => JSON.stringify({ id: n + 1, text: `of ${of}` }));
  const [skip, take] = [Number(query!['skip']), Number(query!['take'])];
  const data = all.slice(skip, skip + take);
  return `{"totalRecords":${all.length},"totalDisplayRecords":${data.length},"data":[${data.join(',')}]}`;
}

async function onboard(): Promise<CompanyKey> {
  [refused, spoiled, beforeRequest] = [undefined, undefined, undefined];
  return harness.onboard(companyIdOf(++next));
}

const forget = (company: CompanyKey, id: string, resource = 'people') =>
  inTransaction(database.db, async (tx) => {
    const { rows } = await forgetRecord(
      tx,
      { catalogue, suppressions: testSuppressions },
      { list: { ...company, resource }, id },
    );
    return rows;
  });

async function idsOf(company: CompanyKey, resource: 'people' | 'notes'): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ id: string }>(
    `SELECT id FROM mirror.${resource} WHERE company_id = $1 ORDER BY id`,
    [company.companyId],
  );
  return rows.map(({ id }) => id);
}

/** Where anything of the person is, but for the feed's last word on the ids. */
async function placesOf(...texts: string[]): Promise<string[]> {
  await stampChanges(database.db);
  const found = await Promise.all(texts.map((text) => occurrencesOf(database.db, text)));
  return [...new Set(found.flat())].filter((place) => !/changes\.(record_)?id$/.test(place)).toSorted();
}

test.each(['berit', 'carl/ä'])('the children of %s go with it, and none is asked for again', async (name) => {
  const company = await onboard();
  const id = idOf(name);
  const encoded = encodeURIComponent(id);
  await harness.sync(company);
  expect(await idsOf(company, 'notes')).toHaveLength(NAMES.length * NOTES);
  expect(await forget(company, id)).toBe(1 + NOTES);
  const asked: string[] = [];
  beforeRequest = async ({ path }) => void asked.push(path);
  for (let night = 0; night < 3; night++) {
    const { walks } = await harness.sync(company, { mode: 'full' });
    expect(walks).toMatchObject([
      { verified: true, received: NAMES.length },
      { verified: true, received: (NAMES.length - 1) * NOTES, deleted: 0 },
    ]);
  }
  expect(asked.filter((path) => path.includes(encoded))).toEqual([]);
  expect(await idsOf(company, 'people')).toEqual(people().filter((each) => each !== id));
  expect(await placesOf(id, `${encoded}/`, `of ${id}`)).toEqual([]);
  const { rows } = await database.db.pool.query<{ id: string; op: string }>(
    `SELECT id, op FROM mirror.changes WHERE company_id = $1 AND data IS NULL AND id NOT LIKE '#%' ORDER BY seq`,
    [company.companyId],
  );
  const children = Array.from({ length: NOTES }, (_, n) => `${encoded}/${n + 1}`);
  expect(rows.map((row) => row.op)).toEqual(Array.from({ length: NOTES + 1 }, () => 'delete'));
  expect(rows.map((row) => row.id).toSorted()).toEqual([id, ...children].toSorted());
});

test('a walk of the children does not bring them back, wherever it stands', async () => {
  for (const name of NAMES) {
    const company = await onboard();
    const stopAt = idOf(name);
    let isDone = false;
    beforeRequest = async ({ path }) => {
      if (isDone || !path.includes(`/${encodeURIComponent(stopAt)}/notes`)) return;
      isDone = true;
      await forget(company, idOf('carl/ä'));
    };
    let run = await harness.sync(company);
    while (run.status === 'running') run = await harness.work(run.id);
    expect(isDone).toBe(true);
    expect(run.walks.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
    expect((await idsOf(company, 'notes')).filter((id) => id.includes('carl'))).toEqual([]);
    expect(await idsOf(company, 'notes')).toHaveLength((NAMES.length - 1) * NOTES);
    expect((await harness.sync(company)).walks).toMatchObject([{ verified: true }, { verified: true, deleted: 0 }]);
  }
});

test('one child alone is forgotten by its whole id', async () => {
  const company = await onboard();
  await harness.sync(company);
  expect(await forget(company, `${idOf('dora')}/2`, 'notes')).toBe(1);
  expect((await harness.sync(company, { mode: 'full' })).walks).toMatchObject([
    { verified: true },
    { verified: true, received: NAMES.length * NOTES, inserted: 0, deleted: 0 },
  ]);
  expect(await idsOf(company, 'notes')).not.toContain(`${idOf('dora')}/2`);
  expect(await idsOf(company, 'notes')).toHaveLength(NAMES.length * NOTES - 1);
});

test('what was rejected, an error that names the parent, and a checkpoint lose it, too', async () => {
  const company = await onboard();
  const [dora, erik] = [idOf('dora'), idOf('erik')];
  refused = erik;
  await harness.sync(company);
  expect(await placesOf(`/${erik}/`)).toContain('muster.walks.error');
  refused = undefined;
  spoiled = dora;
  const run = await harness.sync(company, { mode: 'full' });
  expect(run.walks[0]).toMatchObject({ verified: false, unverified_reason: 'rejected_records' });
  expect(await placesOf(dora)).toContain('muster.rejected_records.text');
  await forget(company, erik);
  await forget(company, dora);
  expect(await placesOf(erik)).toEqual([]);
  expect(await placesOf(dora)).toEqual([]);
  // The record that cannot be kept is forgotten, and stands in no proof's way.
  expect((await harness.sync(company)).walks[0]).toMatchObject({ verified: true, received: NAMES.length });
});
