import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

let admin: AdminFixture;
let company: CompanyKey;
beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
});
// A list has one open hold at most.
beforeEach(() => admin.db.prisma.hold.deleteMany().then(() => undefined));
afterAll(() => admin.stop());

/** Rows of the company's list of employees, by id. */
async function addRows(rows: Readonly<Record<string, object>>, deletedAt: Date | null = null): Promise<void> {
  for (const [id, data] of Object.entries(rows))
    await admin.db.pool.query(
      `INSERT INTO mirror.employees (environment, company_id, id, data, deleted_at) VALUES ($1, $2, $3, $4, $5)`,
      [company.environment, company.companyId, id, JSON.stringify(data), deletedAt],
    );
}

const hold = (sample: string[], status = 'open') =>
  admin.db.prisma.hold.create({
    data: { ...company, resource: 'employees', runId: randomUUID(), walkId: randomUUID(), count: 9, living: 9, sample, status },
  });

const samplesOf = async (id: string, token = TOKEN) => {
  const { json } = await admin.call('GET', '/api/holds', undefined, { authorization: `Bearer ${token}` });
  return json.data.find((one: { id: string }) => one.id === id).samples;
};

test('an open hold says what its living records call themselves, and nothing else of them', async () => {
  await addRows({
    person: { firstName: 'Åse', lastName: 'Ødegård', email: 'ase@example.com', nationalId: '01017012345', name: 'unused' },
    half: { surname: 'Müller', salary: 7 },
    named: { name: 'Salg & service' },
    titled: { title: 'x'.repeat(200), name: '  ' },
    odd: { name: { first: 'nested' }, code: 7 },
    empty: {},
  });
  await addRows({ gone: { name: 'Deleted before' } }, new Date());
  const { id } = await hold(['person', 'half', 'named', 'titled', 'odd', 'empty', 'gone', 'unknown']);
  expect(await samplesOf(id)).toEqual([
    { id: 'person', label: 'Åse Ødegård' },
    { id: 'half', label: 'Müller' },
    { id: 'named', label: 'Salg & service' },
    { id: 'titled', label: 'x'.repeat(80) },
    { id: 'odd' },
    { id: 'empty' },
    { id: 'gone' },
    { id: 'unknown' },
  ]);
  expect(admin.log()).not.toContain('Ødegård');
});

test('the rows of another company, and of another environment, name nothing', async () => {
  const other = await admin.addCompany({ companyId: company.companyId, environment: 'production' });
  const { id } = await admin.db.prisma.hold.create({
    data: {
      ...other,
      resource: 'employees',
      runId: randomUUID(),
      walkId: randomUUID(),
      count: 9,
      living: 9,
      sample: ['person'],
      status: 'open',
    },
  });
  expect(await samplesOf(id)).toEqual([{ id: 'person' }]);
});

test('nobody is told who does not decide, and of nothing that is decided', async () => {
  const tokenOf = async (role: string) => (await admin.call('POST', '/api/tokens', { name: role, role })).json.token;
  const { id } = await hold(['named']);
  expect(await samplesOf(id, await tokenOf('viewer'))).toEqual([{ id: 'named' }]);
  expect(await samplesOf(id, await tokenOf('operator'))).toEqual([{ id: 'named', label: 'Salg & service' }]);
  const decided = await hold(['named'], 'rejected');
  expect(await samplesOf(decided.id)).toEqual([{ id: 'named' }]);
});
