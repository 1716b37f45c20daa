import { compactVerify, createLocalJWKSet } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Signer } from '../../../src/certificates/certificate.js';
import { companyOf, makeUnsigned, signAll, someSigner } from '../../certificates/certificate-fixture.js';
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
    [`company_id=${companyOf(2)}`, (item: Item) => item.company_id === companyOf(2)],
    [
      `company_id=${companyOf(1)}&environment=test&resource=departments`,
      (item: Item) => item.company_id === companyOf(1) && item.resource === 'departments',
    ],
    [`company_id=${companyOf(1)}&environment=production`, () => false],
    ['resource=absences', () => false],
  ] as const) {
    expect((await list(query)).data, query).toEqual(all.filter(wanted));
    const page = await list(`${query}&limit=1`);
    expect([...page.data, ...(page.next_cursor ? (await list(`${query}&cursor=${page.next_cursor}`)).data : [])]).toEqual(
      all.filter(wanted),
    );
  }
});

test('the keys are open to everybody, stay when another key signs, and check what is listed', async () => {
  const before = (await admin.fetch('/.well-known/jwks.json')).json() as Promise<{ keys: unknown[] }>;
  expect((await before).keys).toEqual([signers[0]!.publicKey]);
  await admin.db.prisma.signingKey.create({ data: { kid: signers[1]!.publicKey.kid, x: signers[1]!.publicKey.x } });
  const response = await admin.fetch('/.well-known/jwks.json');
  const jwks = (await response.json()) as { keys: [] };
  expect(jwks.keys).toEqual(signers.map(({ publicKey }) => publicKey));
  const keys = createLocalJWKSet(jwks);
  for (const { jws, kid, id: _, ...said } of (await list('limit=500')).data) {
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
