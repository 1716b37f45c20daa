import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { newGrant, openWalk, records, verifiedWalk } from '../../mirror/mirror-fixture.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

// Every row that approving would delete, and who decided.

let admin: AdminFixture;
let company: CompanyKey;
let other: CompanyKey;
beforeAll(async () => {
  admin = await startAdmin();
});
beforeEach(async () => {
  [company, other] = [await admin.addCompany(), await admin.addCompany({ environment: 'production' })];
  for (const each of [company, other]) await verifiedWalk(admin.db, each, records(60));
});
afterAll(() => admin.stop());

const openHold = async () => (await admin.db.prisma.hold.findFirstOrThrow({ where: { ...company, status: 'open' } })).id;
const rowsOf = (id: string, query = '') => admin.call('GET', `/api/holds/${id}/rows${query}`);
const idsOf = (json: { data: readonly { id: string }[] }) => json.data.map(({ id }) => id);
const expectedIds = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `r${from + n}`).toSorted();
const tokenOf = async (role: string) =>
  (await admin.call('POST', '/api/tokens', { name: `${role} ${randomUUID()}`, role })).json.token as string;
const csvOf = async (id: string, token = TOKEN) => {
  const { headers, text, status } = await admin.call('GET', `/api/holds/${id}/rows`, undefined, {
    accept: 'text/csv',
    authorization: `Bearer ${token}`,
  });
  return { status, type: headers.get('content-type'), lines: text.trimEnd().split('\r\n') };
};

test('all rows are listed page by page, beyond the sample, and as CSV', async () => {
  await verifiedWalk(admin.db, company, records(20));
  const id = await openHold();
  const first = await rowsOf(id, '?limit=30');
  const second = await rowsOf(id, `?limit=30&cursor=${first.json.next_cursor}`);
  expect([idsOf(first.json).length, second.json.next_cursor]).toEqual([30, null]);
  expect([...idsOf(first.json), ...idsOf(second.json)]).toEqual(expectedIds(21, 60));
  const { status, type, lines } = await csvOf(id);
  expect([status, type]).toEqual([200, 'text/csv; charset=utf-8; header=present']);
  expect([lines[0], lines.slice(1).map((line) => line.split(',')[0])]).toEqual(['id,label', expectedIds(21, 60)]);
});

test('rows that a new grant does not show are listed for its hold, and are those that are deleted', async () => {
  await newGrant(admin.db, company);
  await verifiedWalk(admin.db, company, records(50, 11));
  const id = await openHold();
  expect(idsOf((await rowsOf(id)).json)).toEqual(expectedIds(1, 10));
  await admin.call('POST', `/api/holds/${id}/approve`);
  const deleted = await admin.db.prisma.employee.findMany({ where: { ...company, NOT: { deletedAt: null } } });
  expect(deleted.map((row) => row.id).toSorted()).toEqual(expectedIds(1, 10));
});

test('an approval of rows that a later walk has replaced deletes nothing', async () => {
  await newGrant(admin.db, company);
  await verifiedWalk(admin.db, company, records(50, 11));
  const id = await openHold();
  const seen = (await admin.call('GET', `/api/holds/${id}`)).json.run_id;
  await newGrant(admin.db, company);
  await verifiedWalk(admin.db, company, records(40, 21));
  const approval = (run_id: string) => admin.call('POST', `/api/holds/${id}/approve`, { run_id });
  const { status, json } = await approval(seen);
  expect([status, json]).toMatchObject([
    409,
    { code: 'hold_not_open', detail: expect.stringContaining('look at its rows again') },
  ]);
  expect(await admin.db.prisma.employee.count({ where: { ...company, NOT: { deletedAt: null } } })).toBe(0);
  const now = (await admin.call('GET', `/api/holds/${id}`)).json;
  expect([now.status, idsOf((await rowsOf(id)).json)]).toEqual(['open', expectedIds(1, 20)]);
  expect((await approval(now.run_id)).status).toBe(200);
});

test('a viewer is shown ids alone', async () => {
  await admin.db.pool.query(`UPDATE mirror.employees SET data = '{"name": "=Åse"}' WHERE company_id = $1`, [company.companyId]);
  await verifiedWalk(admin.db, company, records(20));
  const id = await openHold();
  await admin.db.pool.query(`UPDATE mirror.employees SET data = '{"name": "=Åse"}' WHERE company_id = $1`, [company.companyId]);
  expect((await rowsOf(id, '?limit=1')).json.data).toEqual([{ id: 'r21', label: '=Åse' }]);
  expect((await csvOf(id)).lines.slice(0, 2)).toEqual(['id,label', "r21,'=Åse"]);
  const viewer = await tokenOf('viewer');
  const { json } = await admin.call('GET', `/api/holds/${id}/rows?limit=1`, undefined, { authorization: `Bearer ${viewer}` });
  expect(json.data).toEqual([{ id: 'r21' }]);
  expect((await csvOf(id, viewer)).lines.slice(0, 2)).toEqual(['id', 'r21']);
});

test('rows are told only while they can be known', async () => {
  await verifiedWalk(admin.db, company, records(20));
  const id = await openHold();
  await openWalk(admin.db, company);
  for (const accept of ['application/json', 'text/csv']) {
    const { status, json } = await admin.call('GET', `/api/holds/${id}/rows`, undefined, { accept });
    expect([status, json.code]).toEqual([409, 'hold_not_open']);
  }
  await admin.call('POST', `/api/holds/${id}/reject`);
  expect((await rowsOf(id)).json).toMatchObject({ code: 'hold_not_open', detail: expect.stringContaining('rejected already') });
  expect((await rowsOf(randomUUID())).status).toBe(404);
  expect((await rowsOf(id, '?cursor=AAAA')).status).toBe(400);
});

test.each(['approve', 'reject'])('who decided to %s, when and why is on the hold', async (verb) => {
  await verifiedWalk(admin.db, company, records(20));
  const id = await openHold();
  const open = (await admin.call('GET', `/api/holds/${id}`)).json;
  expect(open).toMatchObject({ id, status: 'open', count: 40 });
  for (const member of ['decided_at', 'decided_by', 'reason']) expect(open).not.toHaveProperty(member);
  const token = (await admin.call('POST', '/api/tokens', { name: `anna ${verb}`, role: 'operator' })).json.token;
  await admin.call('POST', `/api/holds/${id}/${verb}`, { reason: 'They left.' }, { authorization: `Bearer ${token}` });
  const decided = { decided_by: `anna ${verb}`, reason: 'They left.', decided_at: expect.stringMatching(/^20\d\d-/) };
  expect((await admin.call('GET', `/api/holds/${id}`)).json).toMatchObject(decided);
  const { json } = await admin.call('GET', `/api/holds?company_id=${company.companyId}`);
  expect(json.data).toMatchObject([decided]);
});

test('a hold that a walk closed names no person', async () => {
  await verifiedWalk(admin.db, company, records(20));
  const id = await openHold();
  await verifiedWalk(admin.db, company, records(60));
  const { json } = await admin.call('GET', `/api/holds/${id}`);
  expect(json.status).toBe('superseded');
  expect(json).not.toHaveProperty('decided_at');
});
