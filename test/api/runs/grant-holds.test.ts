import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { newGrant, openWalk, records, verifiedWalk } from '../../mirror/mirror-fixture.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
let companies: CompanyKey[];

beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

/** Three companies, of one in the other environment, with an open hold each. */
beforeEach(async () => {
  await admin.db.prisma.hold.deleteMany();
  companies = [];
  for (const environment of ['test', 'test', 'production'] as const) {
    const company = await admin.addCompany({ environment });
    companies.push(company);
    await verifiedWalk(admin.db, company, records(20));
    await admin.db.prisma.connection.updateMany({ where: company, data: { authorizedAt: new Date('2026-05-03T10:00:00Z') } });
    await newGrant(admin.db, company);
    await admin.db.prisma.connection.updateMany({ where: company, data: { authorizedAt: new Date('2026-05-03T10:00:00Z') } });
    await verifiedWalk(admin.db, company, records(11, 10));
  }
});

const living = (company: CompanyKey) => admin.db.prisma.employee.count({ where: { ...company, deletedAt: null } });
const approve = (body: object) => admin.call('POST', '/api/holds/approve', body);

test('a hold says its cause, in a sentence, too, and the company under which grant it is read', async () => {
  const { json } = await admin.call('GET', `/api/holds?company_id=${companies[0]!.companyId}`);
  expect(json.data).toMatchObject([
    {
      cause: 'grant',
      count: 9,
      living: 20,
      grant: { number: 2, authorized_at: '2026-05-03T10:00:00.000Z' },
      explanation: 'Another person may have authorized on 3 May 2026: 9 of 20 rows of employees are no longer visible.',
    },
  ]);
  const { environment, companyId } = companies[0]!;
  const company = await admin.call('GET', `/api/companies/${environment}/${companyId}`);
  expect(company.json.grant).toEqual({ number: 2, authorized_at: '2026-05-03T10:00:00.000Z' });
});

test('holds are found by their cause', async () => {
  expect((await admin.call('GET', '/api/holds?cause=grant')).json.data).toHaveLength(3);
  expect((await admin.call('GET', '/api/holds?cause=grant&environment=test&status=open')).json.data).toHaveLength(2);
  expect((await admin.call('GET', '/api/holds?cause=share')).json.data).toEqual([]);
});

test('all of an environment are approved together, each on record, and no other', async () => {
  const answer = await approve({ environment: 'test', cause: 'grant', reason: 'the new administrators see everything' });
  expect([answer.status, answer.json]).toEqual([200, { approved: 2, not_approved: 0, next_cursor: null }]);
  expect(await Promise.all(companies.map(living))).toEqual([11, 11, 20]);
  const entries = await admin.db.prisma.auditEntry.findMany({ where: { action: 'hold.approve' } });
  expect(entries.filter(({ details }) => JSON.stringify(details).includes('administrators see'))).toHaveLength(2);
});

test('one whose list is being walked waits, and holds of cause share are left alone', async () => {
  await openWalk(admin.db, companies[0]!);
  await verifiedWalk(admin.db, companies[1]!, []);
  const { json } = await approve({ environment: 'test', cause: 'grant' });
  expect(json).toEqual({ approved: 1, not_approved: 1, next_cursor: null });
  expect(await living(companies[0]!)).toBe(20);
  expect(await living(companies[1]!)).toBe(11);
  expect((await admin.call('GET', '/api/holds?status=open&cause=share')).json.data).toMatchObject([{ count: 11 }]);
});

test.each([{}, { environment: 'test' }, { environment: 'test', cause: 'share' }, { cause: 'grant' }])(
  '%j is refused',
  async (body) => {
    expect((await approve(body)).status).toBe(400);
  },
);
