import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { MusterError } from '../../../src/core/errors.js';
import type { List } from '../../../src/generated/prisma/client.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
const queueLook = { look: (): Promise<never[]> => Promise.resolve([]) };
beforeAll(async () => void (admin = await startAdmin(undefined, { queueLook: { look: () => queueLook.look() } })));
afterAll(() => admin.stop());

const get = async (path: string) => (await admin.call('GET', `/api${path}`)).json;
/** Every item of a list, page by page. */
async function all(path: string, limit: number): Promise<Record<string, string>[]> {
  const items = [];
  let cursor: string | null = '';
  do {
    const page: { data: Record<string, string>[]; next_cursor: string | null } = await get(
      `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${cursor && `&cursor=${cursor}`}`,
    );
    items.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return items;
}

/** A company with that name and, as its id begins, that beginning. */
async function named(name: string, beginning: string, state = {}): Promise<CompanyKey> {
  const company = await admin.addCompany({ companyId: beginning + randomUUID().slice(beginning.length) }, state);
  await admin.db.prisma.company.update({ where: { environment_companyId: company }, data: { name } });
  return company;
}

interface WalkState {
  readonly status?: string;
  readonly verified?: boolean;
  readonly unverifiedReason?: string;
  readonly error?: object;
  readonly rejected?: number;
}

/** The newest walk of a list of the company, and its last proof. */
async function walked(
  company: CompanyKey,
  resource: string,
  walk: WalkState,
  list: Partial<Omit<List, 'privacy'>> = {},
  run = {},
) {
  const { id: runId } = await admin.db.prisma.run.create({
    data: { ...company, trigger: 'nightly', mode: 'full', status: 'succeeded', ...run },
  });
  const created = await admin.db.prisma.walk.create({
    data: { ...company, resource, runId, position: 0, status: 'succeeded', ...walk },
  });
  const data = { lastRunId: runId, lastVerifiedAt: new Date(), ...list };
  const key = { ...company, resource };
  await admin.db.prisma.list.upsert({
    where: { environment_companyId_resource: key },
    create: { ...key, ...data },
    update: data,
  });
  return { runId, walkId: created.id };
}

describe('companies', () => {
  let names: Map<string, string>;
  const found = async (query: string, limit = 100) =>
    (await all(`/companies?${query}`, limit)).map((company) => names.get(company.company_id!));

  const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  beforeAll(async () => {
    const companies: [string, CompanyKey][] = [];
    const add = async (name: string, beginning: string, state = {}) => {
      const company = await named(name, beginning, state);
      companies.push([name, company]);
      return company;
    };
    const fine = { verified: true };
    await walked(await add('Fjord & Fjell AS', 'aa00'), 'employees', fine);
    await walked(await add('100% Ærlig_Handel', 'aa11'), 'employees', fine);
    await add('Must authorize', 'ff00', { reauthorizationReason: 'token_refused' });
    await walked(await add('Paused', 'cc00', { paused: true }), 'employees', fine, { lastVerifiedAt: ago(900) });
    await walked(await add('Late', 'ee00'), 'employees', fine, { lastVerifiedAt: ago(27) });
    await add('Never', 'ee01');
    const failed = await add('Failed', 'fe00');
    await walked(failed, 'departments', fine);
    await walked(failed, 'employees', { status: 'failed', error: { code: 'service_error', message: '' } });
    await walked(await add('Unverified', 'dd00'), 'employees', { unverifiedReason: 'rejected_records' });
    // What is over counts no more, a list that has left the catalogue neither, and a walk that is under way is no trouble yet.
    const mended = await add('Mended', 'bb00');
    await walked(mended, 'employees', { status: 'failed', error: { code: 'service_error', message: '' } });
    await walked(mended, 'employees', fine);
    await walked(mended, 'absences', { status: 'failed', error: {} }, { lastVerifiedAt: null });
    await walked(await add('Under way', 'bb01'), 'employees', {
      status: 'running',
      error: { code: 'service_error', message: '' },
    });
    names = new Map(companies.map(([name, { companyId }]) => [companyId, name]));
  });

  test.each([
    ['q=fjell', ['Fjord & Fjell AS']],
    ['q=FJORD%20%26', ['Fjord & Fjell AS']],
    ['q=æRLIG', ['100% Ærlig_Handel']],
    ['q=100%25', ['100% Ærlig_Handel']],
    ['q=%25', ['100% Ærlig_Handel']],
    ['q=_', ['100% Ærlig_Handel']],
    ['q=AA', ['Fjord & Fjell AS', '100% Ærlig_Handel']],
    ['q=aa1', ['100% Ærlig_Handel']],
    ['q=e&status=paused', ['Paused']],
    ['q=late&environment=production', []],
    ['q=nobody', []],
    ["q='%3B--", []],
    ['q=%5C', []],
  ])('finds %s', async (query, expected) => {
    expect(await found(query)).toEqual(expected);
    expect(await found(query, 1)).toEqual(expected);
  });

  const WORST = [
    'Must authorize',
    'Failed',
    'Late',
    'Never',
    'Unverified',
    'Fjord & Fjell AS',
    '100% Ærlig_Handel',
    'Mended',
    'Under way',
    'Paused',
  ];

  test.each([1, 3, 100])('puts the worst first, in pages of %i', async (limit) => {
    expect(await found('sort=worst', limit)).toEqual(WORST);
  });

  test('finds the worst among those that are asked for', async () => {
    expect(await found('sort=worst&q=e&status=active')).toEqual(
      WORST.filter((name) => /e/i.test(name) && !/Must|Paused/.test(name)),
    );
  });

  test('shows a company of the worst as any other', async () => {
    const [first] = (await get('/companies?sort=worst&limit=1')).data;
    expect(await get(`/companies/test/${first.company_id}`)).toEqual(first);
  });

  test.each(['q=%00', `q=${'x'.repeat(101)}`, 'sort=best', 'q=a&q=b', 'sort=worst&cursor=dGVzdA'])(
    'refuses %s',
    async (query) => {
      const answer = await admin.call('GET', `/api/companies?${query}`);
      expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
    },
  );

  test('refuses the cursor of another order', async () => {
    const { next_cursor: cursor } = await get('/companies?sort=worst&limit=1');
    expect((await admin.call('GET', `/api/companies?cursor=${cursor}`)).status).toBe(400);
  });
});

describe('runs', () => {
  let own: AdminFixture;
  let company: CompanyKey;
  /** By their names: when each was asked for. */
  const RUNS: Record<string, [string, string, string, string]> = {
    a: ['nightly', 'succeeded', '2026-03-01T02:00:00Z', 'employees'],
    b: ['manual', 'failed', '2026-03-01T12:00:00Z', 'departments'],
    c: ['nightly', 'succeeded', '2026-03-02T02:00:00Z', 'employees'],
    // Its transaction began before that of the run before it.
    d: ['resync', 'succeeded', '2026-03-02T01:59:30Z', 'employees'],
    e: ['manual', 'queued', '2026-03-03T02:00:00Z', 'employees'],
  };
  let names: Map<string, string>;
  beforeAll(async () => {
    own = await startAdmin();
    company = await own.addCompany();
    names = new Map();
    for (const [name, [trigger, status, createdAt, resource]] of Object.entries(RUNS)) {
      const { id } = await own.db.prisma.run.create({
        data: { ...company, trigger, status, mode: 'full', createdAt: new Date(createdAt) },
      });
      await own.db.prisma.walk.create({ data: { ...company, runId: id, resource, position: 0 } });
      names.set(id, name);
    }
  });
  afterAll(() => own.stop());

  const found = async (query: string) => {
    const seen: string[] = [];
    let cursor: string | null = '';
    do {
      const { status, json } = await own.call('GET', `/api/runs?limit=2&${query}${cursor && `&cursor=${cursor}`}`);
      expect(status).toBe(200);
      for (const { id } of json.data) seen.push(names.get(id)!);
      cursor = json.next_cursor;
    } while (cursor !== null);
    return seen.join('');
  };

  test.each([
    ['', 'edcba'],
    ['trigger=manual', 'eb'],
    ['trigger=manual&status=failed', 'b'],
    ['trigger=nightly&environment=test', 'ca'],
    ['trigger=nightly&environment=production', ''],
    ['trigger=onboarding', ''],
    ['since=2026-03-02T02:00:00Z', 'ec'],
    ['since=2026-03-02T03:00:00%2B01:00', 'ec'],
    ['until=2026-03-02T02:00:00Z', 'dba'],
    ['since=2026-03-01T12:00:00Z&until=2026-03-03T02:00:00Z', 'dcb'],
    ['since=2026-03-01T12:00:00Z&until=2026-03-03T02:00:00Z&trigger=nightly', 'c'],
    ['since=2027-01-01T00:00:00Z', ''],
    ['until=1999-01-01T00:00:00Z', ''],
    ['until=9999-12-31T23:59:59.999Z', 'edcba'],
    ['resource=employees', 'edca'],
    ['resource=departments', 'b'],
    ['resource=cats', ''],
    ['resource=employees&trigger=manual', 'e'],
  ])('are found by %s', async (query, expected) => {
    expect(await found(query)).toBe(expected);
    expect(await found(`${query}&company_id=${company.companyId}`)).toBe(expected);
  });

  test('a page of a list that few runs have walked goes on behind all that was looked through', async () => {
    await own.db.pool.query(
      `INSERT INTO muster.runs (environment, company_id, trigger, mode, status)
       SELECT 'test', gen_random_uuid(), 'nightly', 'full', 'succeeded' FROM generate_series(1, 2500)`,
    );
    const { json } = await own.call('GET', '/api/runs?resource=departments');
    expect([json.data, json.next_cursor]).toEqual([[], expect.any(String)]);
    expect(await found('resource=departments')).toBe('b');
  });

  test.each([
    'trigger=weekly',
    'since=yesterday',
    'since=2026-03-01',
    'since=2026-03-01T00:00:00',
    'until=0000-01-01T00:00:00Z',
    'resource=Cats!',
  ])('refuses %s', async (query) => {
    const answer = await own.call('GET', `/api/runs?${query}`);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });
});

test('holds and notifications of one company, and of an environment', async () => {
  const [one, other] = [await admin.addCompany(), await admin.addCompany({ environment: 'production' })];
  for (const company of [one, other, one]) {
    const list = {
      ...company,
      resource: `r${randomUUID().slice(0, 6).replaceAll('-', '')}`,
      runId: randomUUID(),
      walkId: randomUUID(),
    };
    await admin.db.prisma.hold.create({ data: { ...list, count: 1, living: 2, sample: ['1'], status: 'open' } });
    await admin.db.prisma.notification.create({
      data: { ...company, type: 'run_failed', change: randomUUID(), details: { run_id: list.runId } },
    });
  }
  for (const list of ['holds', 'notifications']) {
    const count = async (query: string) => (await all(`/${list}?${query}`, 1)).length;
    expect(await count(`company_id=${one.companyId}`)).toBe(2);
    expect(await count(`company_id=${one.companyId}&environment=production`)).toBe(0);
    expect(await count(`company_id=${other.companyId.toUpperCase()}&environment=production`)).toBe(1);
    expect(await count('environment=test')).toBe(2);
    expect(await count('environment=production')).toBe(1);
    expect((await all(`/${list}`, 2)).map(({ company_id }) => company_id)).toEqual(
      [one, other, one].map(({ companyId }) => companyId),
    );
  }
  expect(await all('/holds?status=open&environment=test', 1)).toHaveLength(2);
  expect(await all('/notifications?status=pending&type=run_failed', 2)).toHaveLength(3);
  expect(await all('/notifications?status=failed', 2)).toHaveLength(0);
});

describe('rejected records', () => {
  const TEXT = '{"name":"Bjørn","note":"\\u0000"}';
  let companies: CompanyKey[];
  let newest: string;
  beforeAll(async () => {
    companies = [
      await admin.addCompany({ companyId: `00${randomUUID().slice(2)}` }),
      await admin.addCompany({ companyId: `11${randomUUID().slice(2)}` }),
    ];
    const reject = async (company: CompanyKey, resource: string, texts: string[]) => {
      const { walkId, runId } = await walked(company, resource, { rejected: texts.length, unverifiedReason: 'rejected_records' });
      for (const [position, text] of texts.entries())
        await admin.db.prisma.rejectedRecord.create({
          data: { walkId, pass: 1, page: 2, position, reason: 'nul', text: Buffer.from(text).toString('base64') },
        });
      return runId;
    };
    await reject(companies[0]!, 'employees', ['{"old":1}']);
    newest = await reject(companies[0]!, 'employees', [TEXT, '1', '2']);
    await reject(companies[0]!, 'departments', ['3', '4']);
    await reject(companies[1]!, 'employees', ['5']);
    await reject(companies[1]!, 'departments', ['{"mended":1}']);
    await walked(companies[1]!, 'departments', { verified: true });
  });

  test('are shown as they were received, those of the newest walk of each list alone', async () => {
    const [first] = (await get(`/rejected?company_id=${companies[0]!.companyId}&resource=employees`)).data;
    expect(first).toEqual({
      environment: 'test',
      company_id: companies[0]!.companyId,
      company_name: `Company ${companies[0]!.companyId.slice(0, 4)}`,
      resource: 'employees',
      run_id: newest,
      page: 2,
      position: 0,
      reason: 'nul',
      text: TEXT,
    });
  });

  test.each([1, 2, 3, 100])('come once each, in pages of %i', async (limit) => {
    expect((await all('/rejected', limit)).map(({ text }) => text)).toEqual(['3', '4', TEXT, '1', '2', '5']);
    expect((await all('/rejected?resource=employees', limit)).map(({ text }) => text)).toEqual([TEXT, '1', '2', '5']);
    expect(await all('/rejected?environment=production', limit)).toEqual([]);
  });

  test.each(['resource=!', 'environment=x', 'company_id=x', 'cursor=bm9uZQ'])('refuses %s', async (query) => {
    expect((await admin.call('GET', `/api/rejected?${query}`)).status).toBe(400);
  });
});

describe('the queue', () => {
  test('is shown queue by queue', async () => {
    queueLook.look = async () => [
      {
        queue: 'runs-test',
        environment: 'test',
        waiting: 3,
        active: 1,
        delayed: 2,
        failed: 0,
        oldestWaitingSeconds: 12,
        repeatable: [{ name: 'due-syncs', everySeconds: 5, nextAt: new Date('2026-03-01T02:00:00Z') }],
      } as never,
    ];
    expect(await get('/queue')).toEqual({
      data: [
        {
          queue: 'runs-test',
          environment: 'test',
          waiting: 3,
          active: 1,
          delayed: 2,
          failed: 0,
          oldest_waiting_seconds: 12,
          repeatable: [{ name: 'due-syncs', every_seconds: 5, next_at: '2026-03-01T02:00:00.000Z' }],
        },
      ],
    });
  });

  test('is said to be away in words', async () => {
    queueLook.look = () => Promise.reject(new MusterError('queue_unavailable', 'The queue does not answer.'));
    const answer = await admin.call('GET', '/api/queue');
    expect([answer.status, answer.json]).toMatchObject([
      503,
      { code: 'queue_unavailable', detail: 'The queue does not answer.' },
    ]);
  });
});
