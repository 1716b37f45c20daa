import { afterAll, beforeAll, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { Secret } from '../../src/core/secret.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { listRejectedRecords } from '../../src/db/tables/rejected-records.js';
import { eraseRecords } from '../../src/erasure/record-erasure.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import type { TokenSource } from '../../src/http/token-source.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { privacyKey } from './privacy-list.js';
import { syncHarness } from './sync-harness.js';

// Answers of few bytes that become many values. What would be made of them is counted while they are read, so that none is read to its end.

const COMPANY = '00000000-0000-4000-8000-000000000001';
const many = (count: number, value: string) => `[${Array.from({ length: count }, () => value).join(',')}]`;
const answerWith = (records: string) => `{"totalRecords":1,"data":${records}}`;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

async function walkOf(answer: string | ((skip: number) => string)) {
  const entry = {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', size: 20 },
    privacy: { pay: 'hash', iban: 'mask' },
  };
  const { endpoints } = validateCatalogue({ employees: entry }, 'test', privacyKey());
  const token = new Secret('a.b.c');
  const tokens: TokenSource = { get: async () => token, renew: async () => token, refused: async () => {} };
  const provider = { url: new URL('http://127.0.0.1:9'), tokens };
  const respond = ({ path, query }: ApiRequest) => {
    if (!path.endsWith('/employees')) return '{}';
    return typeof answer === 'string' ? answer : answer(Number(query!['skip']));
  };
  const harness = syncHarness(database.db, provider, endpoints, { respond });
  const known = await database.db.prisma.connection.findFirst({ where: { companyId: COMPANY } });
  const company = known ? ({ environment: 'test', companyId: COMPANY } as const) : await harness.onboard(COMPANY);
  return (await harness.sync(company)).walks[0]!;
}

test.each([
  ['a million numbers', answerWith(many(1_000_000, '1'))],
  ['a million empty objects', answerWith(many(1_000_000, '{}'))],
  ['a record with a million numbers under a rule that hashes', answerWith(`[{"id":1,"pay":${many(1_000_000, '1')}}]`)],
  ['a record with a million numbers under a rule that masks', answerWith(`[{"id":1,"iban":${many(1_000_000, '1')}}]`)],
  ['three million values around the records', `{"totalRecords":1,"x":${many(3_000_000, '1')},"data":[{"id":1}]}`],
])('%s: the page is refused, and nothing of it is kept', async (_, answer) => {
  const walk = await walkOf(answer);
  expect(walk).toMatchObject({ status: 'failed', pages: 0, error: { code: 'response_too_large' } });
  expect(await database.db.prisma.rejectedRecord.count()).toBe(0);
});

test('three million values in the place of the records: the page is refused as one without', async () => {
  expect(await walkOf(`{"totalRecords":1,"data":{"x":${many(3_000_000, '1')}}}`)).toMatchObject({
    status: 'failed',
    error: { code: 'malformed_envelope' },
  });
});

test('a record of a million values is one record', async () => {
  expect(await walkOf(answerWith(`[{"id":1,"x":${many(1_000_000, '1')}}]`))).toMatchObject({ verified: true, received: 1 });
});

test('of records that cannot be kept a thousand are, and of a long one its beginning', async () => {
  const records = Array.from({ length: 1_200 }, (_, n) => JSON.stringify({ name: n === 0 ? 'é'.repeat(50_000) : `n${n}` }));
  const page = (skip: number) => `{"totalRecords":1200,"data":[${records.slice(skip, skip + 20).join(',')}]}`;
  const { rejected, ...walk } = await walkOf(page);
  expect(walk).toMatchObject({ status: 'succeeded', verified: false, unverified_reason: 'rejected_records' });
  expect(rejected).toBeGreaterThanOrEqual(1_200);
  const { data } = await listRejectedRecords(database.db, { limit: 5_000 });
  const [long, ...others] = data.map(({ text }) => Buffer.from(text, 'base64').toString());
  // The last of 8,192 bytes is half a character.
  expect(long).toBe(`${records[0]!.slice(0, 9 + 4_091)}\u{fffd}`);
  expect(others).toHaveLength(999);
  expect(records).toEqual(expect.arrayContaining(others));
});

test('a rejected record that was cut may be of any person: it goes when any person of its list is forgotten', async () => {
  await inTransaction(database.db, (tx) =>
    eraseRecords(
      tx,
      { environment: 'test', companyId: COMPANY, resource: 'employees' },
      { ids: ['nobody'], members: ['id'], placeholderOf: (id) => id },
    ),
  );
  const { data } = await listRejectedRecords(database.db, { limit: 5_000 });
  expect(data).toHaveLength(999);
});
