import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { fakeService } from '../http/fake-service.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;
const { employees, departments } = ENTRIES;

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let company: CompanyKey;
let next = 0;

beforeAll(async () => {
  sandbox = await startSandbox({
    etags: true,
    companies: Array.from({ length: 20 }, (_, n) => ({ name: `C${n}`, employees: 60, departments: 25 })),
  });
  database = await testDatabase();
  const endpoints = endpointsOf({ employees, departments });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  harness = syncHarness(database.db, sandbox, endpoints);
});
afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});
beforeEach(async () => {
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
  await harness.sync(company);
});

const list = () => sandbox.list(company.companyId, 'employees');
const change = (at: number) => list().change(at, list().texts()[at]!.replace('{', '{"marker":"x",'));

/** Statuses of a night's requests for the employees, in their order. */
async function statusesOf(by: SyncHarness, request: Parameters<SyncHarness['sync']>[1], resource = '/employees') {
  const before = sandbox.requests.all(resource).length;
  const run = await by.sync(company, request);
  const statuses = sandbox.requests
    .all(resource)
    .slice(before)
    .map(({ status }) => status);
  return { walk: run.walks.find((walk) => resource.includes(walk.resource))!, statuses };
}

test('pages that are as they were are not sent again, six nights in a row at most, and the walk is verified all the same', async () => {
  const nights: string[] = [];
  for (let night = 0; night < 16; night += 1) {
    const { walk, statuses } = await statusesOf(harness, NIGHTLY);
    nights.push(statuses.every((status) => status === 304) ? 'asked' : 'sent');
    if (nights.at(-1) === 'sent') expect(statuses).toEqual(Array(7).fill(200));
    expect(walk).toMatchObject({ verified: true, proof: 'join', pages: 7, received: 60, unchanged: 60, total_records: 60 });
  }
  // The first row is shorter, so that not all lists are sent in one night.
  expect(nights.join()).toMatch(/^(asked,){1,6}sent,(asked,){6}sent,asked/);
  expect(await mirrored(database.db, 'employees', company.companyId)).toEqual(upstream(sandbox, 'employees', company.companyId));
});

test('no list is asked by ETags for longer than six days after it was sent whole', async () => {
  await database.db.pool.query(
    `UPDATE muster.lists SET read_whole_at = read_whole_at - interval '6 days' WHERE company_id = $1`,
    [company.companyId],
  );
  expect((await statusesOf(harness, NIGHTLY)).statuses).toEqual(Array(7).fill(200));
  expect((await statusesOf(harness, NIGHTLY)).statuses).toEqual(Array(7).fill(304));
});

test('a page that changed is sent, and the next night it is not', async () => {
  change(31);
  const { walk, statuses } = await statusesOf(harness, NIGHTLY);
  expect(statuses.toSorted()).toEqual([200, ...Array(6).fill(304)]);
  expect(walk).toMatchObject({ verified: true, updated: 1, unchanged: 59 });
  expect(await mirrored(database.db, 'employees', company.companyId)).toEqual(upstream(sandbox, 'employees', company.companyId));
  expect((await statusesOf(harness, NIGHTLY)).statuses).toEqual(Array(7).fill(304));
});

test('a record that leaves is missed: the total changed, and with it every page', async () => {
  list().remove(59, 1);
  const { walk, statuses } = await statusesOf(harness, NIGHTLY);
  expect(statuses).not.toContain(304);
  expect(walk).toMatchObject({ verified: true, deleted: 1 });
});

test('a request for everything again is sent everything', async () => {
  expect((await statusesOf(harness, { mode: 'full' })).statuses).toEqual(Array(7).fill(200));
});

test('a list whose catalogue entry says so is never asked for by ETag', async () => {
  const ignoring = syncHarness(database.db, sandbox, endpointsOf({ employees: { ...employees, etag: 'ignore' } }));
  expect((await statusesOf(ignoring, NIGHTLY)).statuses).toEqual(Array(7).fill(200));
  expect((await statusesOf(harness, NIGHTLY)).statuses).toEqual(Array(7).fill(200));
  expect((await statusesOf(harness, NIGHTLY)).statuses).toEqual(Array(7).fill(304));
  await ignoring.close();
});

test('only GET is asked by ETag', async () => {
  expect((await statusesOf(harness, NIGHTLY, '/departments')).statuses).toEqual([200, 200, 200]);
});

test('once a record came with two texts, pages that were not sent are asked for again', async () => {
  const text = list().texts()[9]!;
  change(9);
  const restless = syncHarness(database.db, sandbox, endpointsOf({ employees }), {
    beforeRequest: ({ query }) => (query?.['skip'] === '9' ? list().change(9, text) : undefined),
  });
  const { walk, statuses } = await statusesOf(restless, NIGHTLY);
  await restless.close();
  // The first page with the new text; the second as it was before; then that again, with its records.
  expect(statuses.slice(0, 2)).toEqual([200, 304]);
  expect(statuses.filter((status) => status === 200).length).toBe(7);
  expect(walk).toMatchObject({ verified: true });
  expect(await mirrored(database.db, 'employees', company.companyId)).toEqual(upstream(sandbox, 'employees', company.companyId));
});

test('what another address answered with an ETag is no answer of this one', async () => {
  const [before, now] = [await serviceOfOne('old'), await serviceOfOne('new')];
  const theirs = await before.harness.onboard('00000000-0000-4000-8000-00000000000b');
  await before.harness.sync(theirs);
  const run = await now.harness.sync(theirs, NIGHTLY);
  await before.close();
  await now.close();
  expect(run.walks[0]).toMatchObject({ verified: true, updated: 1 });
});

test('304 with another ETag confirms nothing: the page is asked for without one', async () => {
  const service = await serviceOfOne('old');
  const theirs = await service.harness.onboard('00000000-0000-4000-8000-00000000000c');
  await service.harness.sync(theirs);
  Object.assign(service.answer, { etag: '"2"', name: 'new' });
  const { walks } = await service.harness.sync(theirs, NIGHTLY);
  await service.close();
  expect(walks).toMatchObject([{ verified: true, updated: 1 }]);
  expect(await mirrored(database.db, 'employees', theirs.companyId)).toEqual(['{"id": "1", "name": "new"}']);
});

test('one tag on two pages is no reason to leave a page out, from the first walk on', async () => {
  const service = await serviceOf({ tag: () => '"v1"' });
  const theirs = await service.harness.onboard('00000000-0000-4000-8000-00000000000d');
  expect((await service.harness.sync(theirs)).walks).toMatchObject([{ verified: true, received: 25 }]);
  service.names[14] = 'new';
  expect((await service.harness.sync(theirs, NIGHTLY)).walks).toMatchObject([{ verified: true, updated: 1 }]);
  expect(service.asked.some(({ headers }) => headers['if-none-match'] !== undefined)).toBe(false);
  await service.close();
});

test('an empty tag is none', async () => {
  const service = await serviceOf({ tag: () => '""' });
  const theirs = await service.harness.onboard('00000000-0000-4000-8000-00000000000e');
  await service.harness.sync(theirs);
  service.names[3] = 'new';
  expect((await service.harness.sync(theirs, NIGHTLY)).walks).toMatchObject([{ verified: true, updated: 1 }]);
  await service.close();
});

test.each<[string, 'walk' | 'verify']>([
  ['00000000-0000-4000-8000-00000000000f', 'walk'],
  ['00000000-0000-4000-8000-000000000010', 'verify'],
])(
  'a tag that stays while its page changes is found by the next whole reading (%s: %s), and never used again',
  async (id, by) => {
    const service = await serviceOf({ tag: (url) => `"${new URL(url, 'http://x').searchParams.get('skip')}"` });
    const theirs = await service.harness.onboard(id);
    await service.harness.sync(theirs);
    service.names[3] = 'new';
    // The service says that nothing has changed: nobody can know better.
    expect((await service.harness.sync(theirs, NIGHTLY)).walks).toMatchObject([{ verified: true, updated: 0, unchanged: 25 }]);
    if (by === 'verify') {
      expect((await service.harness.verify(theirs)).walks).toMatchObject([{ verify: { changed_since: 1 } }]);
    } else {
      await database.db.pool.query('UPDATE muster.lists SET etag_walks = 6 WHERE company_id = $1', [id]);
      expect((await service.harness.sync(theirs, NIGHTLY)).walks).toMatchObject([{ verified: true, updated: 1 }]);
    }
    service.names[4] = 'new';
    service.asked.length = 0;
    const updated = by === 'verify' ? 2 : 1;
    expect((await service.harness.sync(theirs, NIGHTLY)).walks).toMatchObject([{ verified: true, updated }]);
    expect(service.asked.some(({ headers }) => headers['if-none-match'] !== undefined)).toBe(false);
    await service.close();
  },
);

test('a tag that is found to be false while others stood for pages has the list read again from its beginning', async () => {
  const tags = new Map<string, string>();
  const service = await serviceOf({ tag: (url) => tags.get(url) ?? `"${url.length}${url}"` });
  const theirs = await service.harness.onboard('00000000-0000-4000-8000-000000000011');
  await service.harness.sync(theirs);
  // The first page keeps its tag, and so is not sent; the last one is sent with a new text and the tag of the first.
  service.names[3] = 'new';
  service.names[24] = 'new';
  const [first, last] = [service.asked.find(({ url }) => url.includes('skip=0&'))!.url, service.asked.at(-1)!.url];
  service.answersFresh.add(last);
  expect(first).not.toBe(last);
  expect((await service.harness.sync(theirs, NIGHTLY)).walks).toMatchObject([{ verified: true, passes: 2, updated: 2 }]);
  await service.close();
});

/** A service of 25 records, whose tags are made of the address that is asked. */
async function serviceOf({ tag }: { readonly tag: (url: string) => string }) {
  const names = Array.from({ length: 25 }, () => 'old');
  /** Pages that are sent whatever tag they are asked by. */
  const answersFresh = new Set<string>();
  const service = await fakeService(({ url, headers }, response) => {
    if (url.startsWith('/auth')) return void response.end('{"access_token":"t"}');
    if (!url.includes('/employees')) return void response.end('{}');
    const etag = tag(url);
    if (headers['if-none-match'] === etag && !answersFresh.has(url)) return void response.writeHead(304, { etag }).end();
    const { searchParams } = new URL(url, 'http://x');
    const [skip, take] = [Number(searchParams.get('skip')), Number(searchParams.get('$take'))];
    const data = names.map((name, n) => ({ id: String(n), name })).slice(skip, skip + take);
    return void response.writeHead(200, { etag }).end(JSON.stringify({ totalRecords: 25, data }));
  });
  const at = { ...sandbox, url: service.url, issueRefreshToken: () => new Secret('r') };
  const by = syncHarness(database.db, at, endpointsOf({ employees }));
  const close = async () => {
    await by.close();
    await service.close();
  };
  return { harness: by, names, asked: service.received, answersFresh, close };
}

test.each([
  ['the next page', { pager: { style: 'next-link', sizeName: 'take', size: 2 }, fields: { data: 'none' } }],
  [
    'the total',
    {
      pager: { style: 'skip-take', skipName: 'skip', takeName: 'take', size: 2 },
      fields: { data: 'none', total: 'header X-Total-Count' },
    },
  ],
])('a list whose headers tell %s is asked without ETags, which services make of the body alone', async (_, entry) => {
  const ids = [1, 2];
  let conditional = 0;
  const service = await fakeService(({ url, headers }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://service');
    if (!pathname.endsWith('/employees')) return void response.end(url.startsWith('/auth') ? '{"access_token":"t"}' : '{}');
    const skip = Number(searchParams.get('skip') ?? 0);
    const text = JSON.stringify(ids.slice(skip, skip + 2).map((id) => ({ id })));
    const etag = `"${text.length}-${skip}"`;
    if (headers['if-none-match'] !== undefined) conditional += 1;
    if (headers['if-none-match'] === etag) return void response.writeHead(304, { etag }).end();
    const link = skip + 2 < ids.length ? `<${pathname}?skip=${skip + 2}>; rel="next"` : '</>; rel="first"';
    response.writeHead(200, { etag, link, 'x-total-count': String(ids.length) }).end(text);
  });
  const at = { ...sandbox, url: service.url, issueRefreshToken: () => new Secret('r') };
  const by = syncHarness(database.db, at, endpointsOf({ employees: { ...employees, ...entry } }));
  const one = await by.onboard(randomUUID());
  await by.sync(one, NIGHTLY);
  // One of a full last page joins behind it, whose body stays as it is.
  ids.push(3);
  const run = await by.sync(one, NIGHTLY);
  expect(run.walks[0]).toMatchObject({ verified: true, received: 3 });
  expect(conditional).toBe(0);
  await by.close();
  await service.close();
});

/** A service of one record, which answers 304 to whatever ETag it is asked with. */
async function serviceOfOne(name: string) {
  const answer = { etag: '"1"', name };
  const service = await fakeService(({ url, headers }, response) => {
    const { etag } = answer;
    if (url.startsWith('/auth')) response.end('{"access_token":"t"}');
    else if (!url.includes('/employees')) response.end('{}');
    else if (headers['if-none-match'] !== undefined) response.writeHead(304, { etag }).end();
    else response.writeHead(200, { etag }).end(`{"totalRecords":1,"data":[{"id":"1","name":"${answer.name}"}]}`);
  });
  const at = { ...sandbox, url: service.url, issueRefreshToken: () => new Secret('r') };
  const by = syncHarness(database.db, at, endpointsOf({ employees }));
  const close = async () => {
    await by.close();
    await service.close();
  };
  return { harness: by, answer, close };
}
