import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;

beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

test('an operator gives up the ids of a list, and the audit says so', async () => {
  const company = await admin.addCompany();
  await admin.db.prisma.list.create({ data: { ...company, resource: 'employees', idField: 'id', records: 1 } });
  await admin.db.prisma.employee.create({ data: { ...company, id: '1', data: {} } });
  const path = `/api/companies/${company.environment}/${company.companyId}/rekey`;
  expect(await admin.call('POST', path, { resource: 'employees' })).toMatchObject({
    status: 200,
    json: { resource: 'employees', deleted: 1 },
  });
  expect(await admin.call('POST', path, { resource: 'unheard_of' })).toMatchObject({
    status: 422,
    json: { code: 'unknown_resource' },
  });
  expect(await admin.db.prisma.employee.count({ where: { ...company, deletedAt: null } })).toBe(0);
  expect(await admin.db.prisma.auditEntry.count({ where: { ...company, action: 'list.rekey' } })).toBeGreaterThan(0);
});
