import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, writeChanges } from '../admin-fixture.js';

// The feed of one company and of one record, in both orders, compared with the whole feed.

interface Change {
  readonly seq: number;
  readonly resource: string;
  readonly environment: string;
  readonly company_id: string;
  readonly id: string;
  readonly data: unknown;
}

let admin: AdminFixture;
let companies: CompanyKey[];
let all: Change[];
/** With whatever an address, a pattern or a quote could mean. */
const IDS = ['1', '10', 'a/b', '100%', "O'Neill", 'é – "x"', 'ab'.repeat(100)];

beforeAll(async () => {
  admin = await startAdmin();
  const shared = randomUUID();
  companies = [
    await admin.addCompany(),
    await admin.addCompany({ environment: 'production', companyId: shared }),
    await admin.addCompany({ environment: 'test', companyId: shared }),
  ];
  for (let n = 0; n < 12; n += 1) {
    const company = companies[n % 3]!;
    const resource = n % 4 === 0 ? 'departments' : 'employees';
    const ids = IDS.filter((_, at) => (n * 7 + at * 5) % 3 !== 0);
    if (n % 5 < 3)
      await writeChanges(
        admin.db,
        company,
        ids.map((id) => ({ id, data: `{"n":${n}}` })),
        resource,
      );
    else await writeWholeBatch(company, ids, resource, n);
  }
  all = await readAll('limit=7');
});
afterAll(() => admin.stop());

/** A batch that keeps its changes as the text that was received. */
async function writeWholeBatch({ environment, companyId }: CompanyKey, ids: readonly string[], resource: string, n: number) {
  const text = `{"n":${n}}`;
  await admin.db.pool.query(
    `INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at, ids, starts, lengths, texts)
     VALUES ($1, $2, $3, $4, now(), $5, $6, $7, $8)`,
    [
      ids.length,
      environment,
      companyId,
      resource,
      ids,
      ids.map((_, at) => 1 + at * text.length),
      ids.map(() => text.length),
      Buffer.from(text.repeat(ids.length)),
    ],
  );
}

async function readAll(query: string): Promise<Change[]> {
  const found: Change[] = [];
  for (let after = 0; ; ) {
    const { json } = await admin.call('GET', `/api/changes?${query}&after=${after}`);
    found.push(...json.data);
    if (json.next_after === after) return found;
    after = json.next_after;
  }
}

async function readNewest(query: string): Promise<Change[]> {
  const found: Change[] = [];
  for (let before = ''; ; ) {
    const { status, json } = await admin.call('GET', `/api/changes?${query}&order=newest&before=${before}`);
    expect([status, json.next_after]).toEqual([200, all.at(-1)?.seq ?? json.next_after]);
    found.push(...json.data);
    if (json.next_before === null) return found;
    before = json.next_before;
  }
}

test.each([1, 3, 1000])(
  'the feed of a company, a list or a record is the whole feed without the rest, in either order (limit %d)',
  async (limit) => {
    const [one, , other] = companies;
    const filters: readonly Partial<Change>[] = [
      {},
      { company_id: one!.companyId },
      { company_id: other!.companyId },
      { company_id: other!.companyId, environment: 'test' },
      { company_id: one!.companyId, resource: 'departments' },
      { resource: 'departments' },
      ...IDS.map((id) => ({ id, resource: 'employees', company_id: one!.companyId })),
      { id: IDS[2]! },
      { company_id: one!.companyId, id: 'unknown' },
      { company_id: randomUUID() },
    ];
    for (const filter of filters) {
      const query = `limit=${limit}&${new URLSearchParams(filter as Record<string, string>)}`;
      const isLike = (change: Change) => Object.entries(filter).every(([name, value]) => change[name as keyof Change] === value);
      const expected = all.filter(isLike);
      expect(await readAll(query), query).toEqual(expected);
      expect(await readNewest(query), query).toEqual(expected.toReversed());
    }
  },
);

test('a consumer of one company reads past the changes of others, so that it waits at the end of the feed', async () => {
  const { json } = await admin.call('GET', `/api/changes?company_id=${randomUUID()}`);
  expect(json).toMatchObject({ data: [], next_after: all.at(-1)!.seq });
});

test('lines come newest first, too, and the two orders do not mix', async () => {
  const lines = await admin.call('GET', '/api/changes?order=newest&limit=2', undefined, { accept: 'application/x-ndjson' });
  expect(
    lines.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).seq),
  ).toEqual(
    all
      .slice(-2)
      .map(({ seq }) => seq)
      .toReversed(),
  );
  expect(lines.headers.get('x-next-before')).toBe(String(all.at(-2)!.seq));
  for (const query of [
    'order=newest&after=3',
    'before=3',
    'order=oldest',
    `order=newest&feed=${randomUUID()}`,
    'id=%00',
    'company_id=1',
  ])
    expect((await admin.call('GET', `/api/changes?${query}`)).status, query).toBe(400);
});
