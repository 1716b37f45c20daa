import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { DIFF_STATEMENTS } from '../../../src/db/tables/run-diff.js';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.js';
import { ENTRIES, endpointsOf } from '../../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../../walks/sync-harness.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

const { employees, departments } = ENTRIES;
const record = (id: number, rest: string) => `{"id":"d${String(id).padStart(2, '0')}",${rest}}`;

let admin: AdminFixture;
let sandbox: Sandbox;
let harness: SyncHarness;
let company: CompanyKey;
let list: ReturnType<Sandbox['list']>;

beforeAll(async () => {
  admin = await startAdmin();
  sandbox = await startSandbox({ companies: [{ name: 'Diff', employees: 30, departments: 6 }] });
  harness = syncHarness(admin.db, sandbox, endpointsOf({ employees, departments }));
  company = await harness.onboard(sandbox.companies[0]!.companyId);
  list = sandbox.list(company.companyId, 'departments');
  for (let n = 0; n < 6; n += 1) list.change(n, record(n, '"rate":1.50,"address":{"city":"Oslo","zip":"0001"},"tags":[1]'));
});
afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await admin.stop();
});

const night = async () => (await harness.sync(company, { mode: 'full' })).id;
const diff = (run: string, query = '') => admin.call('GET', `/api/runs/${run}/diff?resource=departments${query}`);

test('says what changed between two runs, member by member and with every digit', async () => {
  const first = await night();
  list.change(0, record(0, '"rate":1.5,"address":{"city":"Oslo","zip":"0002"},"tags":[1]'));
  list.change(1, record(1, '"rate":12345678901234567890.10,"tags":[1,2],"note":null'));
  list.remove(5);
  list.insert(5, record(9, '"rate":3'));
  const second = await night();

  const answer = await diff(second);
  expect(answer.status).toBe(200);
  expect(answer.json).toMatchObject({ run: second, against: first, resource: 'departments', next_cursor: null });
  expect(answer.json.data.map(({ id, op, kept }: Record<string, unknown>) => [id, op, kept])).toEqual([
    ['d00', 'update', true],
    ['d01', 'update', true],
    ['d05', 'delete', true],
    ['d09', 'insert', true],
  ]);
  const text = (await diff(second, '&values=text')).json;
  expect(text.data[0].changes).toEqual([
    { path: 'address.zip', before: '"0001"', after: '"0002"' },
    { path: 'rate', before: '1.50', after: '1.5' },
  ]);
  expect(text.data[1].changes).toEqual([
    { path: 'address', before: '{"zip": "0001", "city": "Oslo"}' },
    { path: 'note', after: 'null' },
    { path: 'rate', before: '1.50', after: '12345678901234567890.10' },
    { path: 'tags', before: '[1]', after: '[1, 2]' },
  ]);
  expect(text.data[3].changes).toEqual([
    { path: 'id', after: '"d09"' },
    { path: 'rate', after: '3' },
  ]);
  expect(answer.text).toMatch(/"after": 12345678901234567890\.10/);

  // The first run of all is held against nothing.
  const whole = (await diff(first)).json;
  expect(whole.against).toBeNull();
  expect(whole.data.every(({ op }: { op: string }) => op === 'insert')).toBe(true);
  expect(whole.data).toHaveLength(6);
});

test('says to a viewer which members changed, and none of their values', async () => {
  const { json } = await admin.call('POST', '/api/tokens', { name: 'onlooker', role: 'viewer' });
  const [run] = await admin.db.prisma.run.findMany({ orderBy: { seq: 'desc' }, take: 1 });
  const path = `/api/runs/${run!.id}/diff?resource=departments`;
  for (const query of ['', '&values=text']) {
    const seen = await admin.call('GET', path + query, undefined, { authorization: `Bearer ${json.token}` });
    expect(seen.json).toMatchObject({ run: run!.id, values_hidden: true });
    const whole = (await admin.call('GET', path + query)).json;
    expect(whole.values_hidden).toBeUndefined();
    const bare = ({ changes, ...item }: { changes: { path: string }[] }) => ({
      ...item,
      changes: changes.map((each) => ({ path: each.path })),
    });
    expect(seen.json.data).toEqual(whole.data.map(bare));
    expect(seen.json.data[0].changes.length).toBeGreaterThan(0);
  }
});

test('joins what several runs did, leaves out what is as it was, and pages by a cursor', async () => {
  const before = await night();
  list.change(2, record(2, '"rate":2'));
  list.change(3, record(3, '"rate":3'));
  const between = await night();
  list.change(2, record(2, '"rate":1.50,"address":{"city":"Oslo","zip":"0001"},"tags":[1]'));
  list.change(4, record(4, '"rate":4'));
  const after = await night();
  const ids = async (query: string) => (await diff(after, query)).json.data.map(({ id }: { id: string }) => id);
  expect(await ids('')).toEqual(['d02', 'd04']);
  expect(await ids(`&against=${between}`)).toEqual(['d02', 'd04']);
  expect(await ids(`&against=${before}`)).toEqual(['d03', 'd04']);

  const seen: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const { json } = await diff(after, `&against=${before}&limit=1${cursor && `&cursor=${cursor}`}`);
    seen.push(...json.data.map(({ id }: { id: string }) => id));
    cursor = json.next_cursor;
  }
  expect(seen).toEqual(['d03', 'd04']);
});

test('refuses what cannot be compared, and says why', async () => {
  const [first, second] = [await night(), await night()];
  expect((await diff(first, `&against=${second}`)).json).toMatchObject({ status: 400, code: 'invalid_request' });
  expect((await admin.call('GET', `/api/runs/${second}/diff`)).json).toMatchObject({ status: 400, code: 'invalid_request' });
  expect((await admin.call('GET', `/api/runs/${second}/diff?resource=absences`)).json.code).toBe('unknown_resource');
  expect((await diff('00000000-0000-4000-8000-000000000000')).json.code).toBe('run_not_found');
  const verification = await harness.verify(company);
  expect((await diff(verification.id)).json.code).toBe('invalid_request');
  expect((await diff(second, '&cursor=!')).json.code).toBe('invalid_request');
});

test('says where the feed no longer has a version, and where it has nothing of that time', async () => {
  const before = await night();
  list.change(0, record(0, '"rate":7'));
  const after = await night();
  const { pool } = admin.db;
  const of = `environment = 'test' AND company_id = '${company.companyId}'`;
  // What was received of the record before is erased.
  await pool.query(
    `UPDATE muster.changes SET data = NULL WHERE batch_id < (SELECT max(id) FROM muster.change_batches WHERE ${of})`,
  );
  await pool.query(
    `UPDATE muster.change_batches SET texts = NULL WHERE id < (SELECT max(id) FROM muster.change_batches WHERE ${of})`,
  );
  expect((await diff(after, `&against=${before}`)).json.data).toEqual([{ id: 'd00', op: 'update', kept: false, changes: [] }]);

  await admin.call('GET', '/api/changes');
  await pool.query(`DELETE FROM muster.change_batches WHERE id < (SELECT max(id) FROM muster.change_batches WHERE ${of})`);
  await pool.query(`UPDATE muster.change_batches SET changed_at = now() + interval '1 second' WHERE ${of}`);
  const answer = await diff(after, `&against=${before}`);
  expect(answer.json).toMatchObject({ status: 410, code: 'changes_expired' });
});

test('goes by the index of the list, however long the feed is', async () => {
  const key = { ...company, environment: 'test', resource: 'departments' };
  const page = { from: '1', until: null, last: '', portion: 100, values: 'json', room: 8_000_000, mostBytes: 8_000_000 };
  const explained = [DIFF_STATEMENTS.span({ ...key, against: '1', run: '2' }), DIFF_STATEMENTS.page({ ...key, ...page })];
  const client = await admin.db.pool.connect();
  await client.query('BEGIN; SET LOCAL enable_seqscan = off');
  for (const { text, values } of explained) {
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, [...values]);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).not.toMatch(/Seq Scan on (change_batches|changes|runs)\b/);
    expect(plan).toMatch(/change_batches_environment_company_id_resource_id_idx/);
  }
  await client.query('ROLLBACK');
  client.release();
});
