import { compactVerify, createLocalJWKSet } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Signer } from '../../../src/certificates/certificate.js';
import { makeUnsigned, signAll, someSigner } from '../../certificates/certificate-fixture.js';
import { companyIdOf } from '../../support/company-ids.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
let signers: Signer[];

beforeAll(async () => {
  admin = await startAdmin();
  signers = [await someSigner(), await someSigner()];
  await makeUnsigned(admin.db, { companies: 3, nights: 2 });
  await signAll(admin.db, signers[0]!);
});
afterAll(() => admin.stop());

interface Item {
  readonly id: string;
  readonly environment: string;
  readonly company_id: string;
  readonly company_name?: string;
  readonly resource: string;
  readonly kid: string;
  readonly jws: string;
}

async function list(query: string): Promise<{ data: Item[]; next_cursor: string | null }> {
  return (await admin.call('GET', `/api/certificates?${query}`)).json;
}

test('certificates are listed newest first, page by page, and narrowed by each filter and by all of them', async () => {
  const all = (await list('limit=500')).data;
  expect(all).toHaveLength(12);
  expect(all.map(({ id }) => Number(id))).toEqual(all.map(({ id }) => Number(id)).toSorted((a, b) => b - a));
  const first = await list('limit=5');
  const rest = await list(`limit=500&cursor=${first.next_cursor}`);
  expect([...first.data, ...rest.data]).toEqual(all);
  expect(rest.next_cursor).toBeNull();
  for (const [query, wanted] of [
    ['environment=test', (item: Item) => item.environment === 'test'],
    ['resource=employees', (item: Item) => item.resource === 'employees'],
    [`company_id=${companyIdOf(2)}`, (item: Item) => item.company_id === companyIdOf(2)],
    [
      `company_id=${companyIdOf(1)}&environment=test&resource=departments`,
      (item: Item) => item.company_id === companyIdOf(1) && item.resource === 'departments',
    ],
    [`company_id=${companyIdOf(1)}&environment=production`, () => false],
    ['resource=absences', () => false],
  ] as const) {
    expect((await list(query)).data, query).toEqual(all.filter(wanted));
    const page = await list(`${query}&limit=1`);
    expect([...page.data, ...(page.next_cursor ? (await list(`${query}&cursor=${page.next_cursor}`)).data : [])]).toEqual(
      all.filter(wanted),
    );
  }
});

test('certificates are found by a part of the company name, by a day in the zone of the schedule, and between two times', async () => {
  await admin.db.prisma.connection.create({
    data: { environment: 'test', companyId: companyIdOf(1), token: { create: { refreshToken: 'encrypted' } } },
  });
  await admin.db.prisma.company.create({
    data: { environment: 'test', companyId: companyIdOf(1), name: 'Brattskjær Båtbyggeri' },
  });
  const ofCompany = (await list(`company_id=${companyIdOf(1)}`)).data;
  expect(ofCompany).toHaveLength(4);
  expect((await list('company=batbygg')).data).toEqual(ofCompany);
  expect((await list('company=nowhere')).data).toEqual([]);
  const [newest] = ofCompany as [Item & { verified_at: string }];
  await admin.db.pool.query(`UPDATE muster.certificates SET verified_at = '2026-03-29T21:59:59.999Z' WHERE id = $1`, [newest.id]);
  const ids = async (query: string) => (await list(query)).data.map(({ id }) => id);
  expect(await ids('day=2026-03-29')).toEqual([newest.id]);
  expect(await ids('day=2026-03-30')).toEqual([]);
  expect(await ids('company=batbygg&day=2026-03-29&resource=' + newest.resource)).toEqual([newest.id]);
  expect(await ids('since=2026-03-29T21:59:59.999Z&until=2026-03-29T22:00:00Z')).toEqual([newest.id]);
  expect(await ids('day=2026-03-29&until=2026-03-29T21:59:59.999Z')).toEqual([]);
  expect(await ids('until=2026-03-30T00:00:00Z')).toEqual([newest.id]);
  expect((await ids('since=2026-03-30T00:00:00Z')).length).toBe(11);
  for (const wrong of ['day=2026-02-30', 'day=yesterday', 'since=now'])
    expect((await admin.call('GET', `/api/certificates?${wrong}`)).status).toBe(400);
  const berlin = await startAdmin(undefined, { schedule: { cron: '0 2 * * *', timezone: 'Europe/Berlin', spreadMinutes: 0 } });
  await makeUnsigned(berlin.db, { companies: 1, nights: 1 });
  await signAll(berlin.db, signers[0]!);
  await berlin.db.pool.query(`UPDATE muster.certificates SET verified_at = '2026-03-29T22:00:00Z'`);
  expect((await berlin.call('GET', '/api/certificates?day=2026-03-30')).json.data).toHaveLength(2);
  expect((await berlin.call('GET', '/api/certificates?day=2026-03-29')).json.data).toHaveLength(0);
  await berlin.stop();
});

test('one certificate is shown, and one that there is not is refused', async () => {
  const [newest] = (await list('limit=1')).data;
  expect((await admin.call('GET', `/api/certificates/${newest!.id}`)).json).toEqual(newest);
  expect((await admin.call('GET', '/api/certificates/999999999')).status).toBe(404);
  for (const wrong of ['x', '-1', '9'.repeat(19)])
    expect((await admin.call('GET', `/api/certificates/${wrong}`)).status).toBe(400);
});

test('the keys are open to everybody, stay when another key signs, and check what is listed', async () => {
  const before = (await admin.fetch('/.well-known/jwks.json')).json() as Promise<{ keys: unknown[] }>;
  expect((await before).keys).toEqual([signers[0]!.publicKey]);
  await admin.db.prisma.signingKey.create({ data: { kid: signers[1]!.publicKey.kid, x: signers[1]!.publicKey.x } });
  const response = await admin.fetch('/.well-known/jwks.json');
  const jwks = (await response.json()) as { keys: [] };
  expect(jwks.keys).toEqual(signers.map(({ publicKey }) => publicKey));
  const keys = createLocalJWKSet(jwks);
  for (const { jws, kid, id: _, company_name: _name, ...said } of (await list('limit=500')).data) {
    const { payload, protectedHeader } = await compactVerify(jws, keys);
    expect(protectedHeader.kid).toBe(kid);
    expect(JSON.parse(Buffer.from(payload).toString())).toEqual(said);
  }
  expect((await admin.fetch('/.well-known/jwks.json', { method: 'POST' })).status).toBe(405);
});

test('what is not signed yet is not listed', async () => {
  const count = (await list('limit=500')).data.length;
  await admin.db.pool.query(
    `UPDATE muster.certificates SET jws = NULL, facts = '{}' WHERE id = (SELECT max(id) FROM muster.certificates)`,
  );
  expect((await list('limit=500')).data).toHaveLength(count - 1);
});
