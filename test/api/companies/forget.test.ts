import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { occurrencesOf } from '../../support/occurrences.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

const ID = 'person-0f8e2c51-77';

let admin: AdminFixture;
let company: CompanyKey;

beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
});
afterAll(() => admin.stop());

const call = (path: string, body: object, headers?: Record<string, string>) =>
  admin.call('POST', `/api/companies/${company.environment}/${company.companyId}/${path}`, body, headers);

test('a record is forgotten and let in again, and nothing says whose it was', async () => {
  await admin.db.prisma.list.create({ data: { ...company, resource: 'employees', idField: 'uid', records: 1 } });
  await admin.db.prisma.employee.create({ data: { ...company, id: ID, data: { uid: ID, id: 5 } } });
  const key = { 'idempotency-key': 'once' };
  expect(await call('forget', { resource: 'employees', id: ID }, key)).toMatchObject({ status: 200, json: { erased: 1 } });
  expect(await call('forget', { resource: 'employees', id: ID }, key)).toMatchObject({ status: 200, json: { erased: 1 } });
  expect(await call('forget', { resource: 'employees', id: ID })).toMatchObject({ status: 200, json: { erased: 0 } });
  expect(await admin.db.prisma.list.findFirst({ where: company })).toMatchObject({ records: 0, hasSuppressions: true });
  const { rows } = await admin.db.pool.query('SELECT member FROM muster.marks ORDER BY 1');
  expect(rows).toEqual([{ member: 'id' }, { member: 'uid' }]);
  // The one entry by which readers of the feed learn of it.
  expect(await occurrencesOf(admin.db, ID)).toEqual(['muster.changes.record_id']);

  expect(await call('forget/lift', { resource: 'employees', id: ID })).toMatchObject({ status: 200, json: { lifted: true } });
  expect(await call('forget/lift', { resource: 'employees', id: ID })).toMatchObject({ status: 200, json: { lifted: false } });
  expect(await admin.db.prisma.suppression.count()).toBe(0);

  const audit = await admin.db.prisma.auditEntry.findMany({ where: { ...company, action: { startsWith: 'record.' } } });
  expect(audit.map(({ action, details }) => ({ action, details }))).toEqual(
    ['record.forget', 'record.forget', 'record.lift', 'record.lift'].map((action) => ({
      action,
      details: { resource: 'employees', outcome: 'done' },
    })),
  );
  expect(admin.log()).not.toContain(ID);
});

test.each([
  ['an unknown list', { resource: 'unheard_of', id: ID }, 422, 'unknown_resource'],
  ['no id', { resource: 'employees', id: '' }, 400, 'invalid_request'],
  ['an id that PostgreSQL cannot hold', { resource: 'employees', id: `${ID}\u0000` }, 400, 'invalid_request'],
  ['a long id', { resource: 'employees', id: ID.repeat(200) }, 400, 'invalid_request'],
  ['another member', { resource: 'employees', id: ID, because: ID }, 400, 'invalid_request'],
])('%s is refused without being repeated', async (_, body, status, code) => {
  for (const path of ['forget', 'forget/lift']) {
    const answer = await call(path, body);
    expect(answer).toMatchObject({ status, json: { code } });
    expect(JSON.stringify(answer.json)).not.toContain(ID);
  }
  expect(admin.log()).not.toContain(ID);
  expect(await occurrencesOf(admin.db, ID)).toEqual(['muster.changes.record_id']);
});

test('of a company that is not there nobody is forgotten', async () => {
  const path = `/api/companies/test/5f0a3c1e-0000-4000-8000-000000000000/forget`;
  expect(await admin.call('POST', path, { resource: 'employees', id: ID })).toMatchObject({ status: 404 });
});

test('nor by anybody but an admin', async () => {
  const { json } = await admin.call('POST', '/api/tokens', { name: 'operator', role: 'operator' });
  const headers = { authorization: `Bearer ${json.token}` };
  for (const path of ['forget', 'forget/lift'])
    expect(await call(path, { resource: 'employees', id: ID }, headers)).toMatchObject({ status: 403 });
});

test('what the service said of any list may name anybody: it goes with a person who is forgotten, and with the company', async () => {
  const other = await admin.addCompany();
  const refused = async (of: CompanyKey, resource: string) => {
    const walk = { ...of, resource, position: 0, status: 'failed', serviceSays: `No rights for ${ID}.` };
    const run = { ...of, trigger: 'nightly', mode: 'full', status: 'failed', walks: { create: [walk] } };
    await admin.db.prisma.run.create({ data: run });
  };
  for (const of of [other, await admin.addCompany()]) for (const list of ['employees', 'departments']) await refused(of, list);
  const kept = async () =>
    (await admin.db.prisma.walk.findMany({ where: { serviceSays: { not: null } } }))
      .filter(({ companyId }) => companyId === other.companyId)
      .map(({ resource }) => resource);
  const path = `/api/companies/${other.environment}/${other.companyId}`;
  await admin.call('POST', `${path}/forget`, { resource: 'employees', id: ID });
  expect(await kept()).toEqual([]);
  await refused(other, 'departments');
  expect((await admin.call('DELETE', path)).status).toBe(204);
  expect(await kept()).toEqual([]);
  expect(await admin.db.prisma.walk.count({ where: { serviceSays: { not: null } } })).toBe(2);
  await admin.db.prisma.run.deleteMany();
});
