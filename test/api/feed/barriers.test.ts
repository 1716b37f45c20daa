import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
const companyId = randomUUID();

beforeAll(async () => {
  admin = await startAdmin();
  // None has a number yet, as walks leave them.
  await admin.db.prisma.barrier.createMany({
    data: [3n, 3n, 5n, 8n].map((seq, n) => ({
      environment: n === 3 ? 'production' : 'test',
      companyId,
      resource: n % 2 === 0 ? 'employees' : 'departments',
      seq,
      verifiedAt: new Date(`2026-11-2${n}T02:00:00Z`),
      records: n,
      runId: randomUUID(),
    })),
  });
});
afterAll(() => admin.stop());

interface Answer {
  readonly data: { readonly number: number; readonly seq: number }[];
  readonly next_after: number;
}

async function read(query: string): Promise<Answer> {
  return (await admin.call('GET', `/api/barriers?${query}`)).json as Answer;
}

test('barriers come once each, in the order of their numbers', async () => {
  const first = await read('limit=3');
  expect(first.data.map(({ number, seq }) => [number, seq])).toEqual([
    [1, 3],
    [2, 3],
    [3, 5],
  ]);
  expect(first.data[0]).toMatchObject({ environment: 'test', company_id: companyId, resource: 'employees', records: 0 });
  const second = await read(`after=${first.next_after}`);
  expect(second).toMatchObject({ data: [{ number: 4, seq: 8 }], next_after: 4 });
  expect(await read('after=4')).toEqual({ data: [], next_after: 4 });
});

test('with a filter an answer may be empty, and goes on all the same', async () => {
  expect(await read('resource=departments&limit=1')).toEqual({ data: [], next_after: 1 });
  expect(await read('resource=departments&after=1&limit=1')).toMatchObject({ data: [{ number: 2 }], next_after: 2 });
  expect(await read('environment=production')).toMatchObject({ data: [{ number: 4 }], next_after: 4 });
});
