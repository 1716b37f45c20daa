import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Resource } from '../../src/sandbox/company-spec.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { accessTokenFor, get, post, TestClock } from './client.js';

const COMPANY = 'c0c0c0c0-0000-4000-8000-00000000000c';
const EMPTY = 'c0c0c0c0-0000-4000-8000-00000000000e';
const V1 = `/api/companies/${COMPANY}`;
const V2 = `/api/v2.0/companies/${COMPANY}`;

const clock = new TestClock();
let sandbox: Sandbox;
let token: string;

beforeAll(async () => {
  sandbox = await startSandbox({
    clock,
    maxTake: 100,
    pageTokenSeconds: 60,
    accessTokenSeconds: 1_000_000,
    wrapped: ['documents'],
    companies: [
      { companyId: COMPANY, name: 'Company', employees: 257, departments: 120, absences: 300, documents: 200, positions: 64 },
      { companyId: EMPTY, name: 'Empty', employees: 0 },
    ],
  });
  token = await accessTokenFor(sandbox, COMPANY);
});

afterAll(() => sandbox.stop());

interface Result {
  totalRecords: number;
  totalDisplayRecords: number;
  data: unknown[];
}

/** Walks an offset list as its documentation says, and joins what stands between the brackets of `data`, text for text. */
async function walkOffsets(fetchPage: (skip: number) => Promise<Response>): Promise<string> {
  const pieces: string[] = [];
  let received = 0;
  for (;;) {
    const text = await (await fetchPage(received)).text();
    const page = JSON.parse(text) as Result;
    expect(page.totalDisplayRecords).toBe(page.data.length);
    pieces.push(text.slice(text.indexOf('"data":[') + 8, -2));
    received += page.data.length;
    if (received >= page.totalRecords || page.data.length === 0) return pieces.join(',');
  }
}

async function walkTokens(fetchPage: (token: string | undefined) => Promise<Response>): Promise<string> {
  const pieces: string[] = [];
  for (let next: string | undefined; ; ) {
    const text = await (await fetchPage(next)).text();
    const { value } = JSON.parse(text) as { value: { hasNextPage: boolean; nextPageToken: string | null } };
    pieces.push(text.slice(text.indexOf('"data":[') + 8, -3));
    if (!value.hasNextPage) {
      expect(value.nextPageToken).toBeNull();
      return pieces.join(',');
    }
    next = value.nextPageToken ?? undefined;
  }
}

const truth = (resource: Resource) => sandbox.records(COMPANY, resource).join(',');

describe('a walk receives every record, digit by digit', () => {
  test('employees: skip and $take in the query', async () => {
    const walk = await walkOffsets((skip) => get(sandbox, token, `${V1}/employees`, { skip: String(skip), $take: '50' }));
    expect(walk).toBe(truth('employees'));
  });

  test('departments: skip and take in the body', async () => {
    const walk = await walkOffsets((skip) => post(sandbox, token, `${V2}/departments/list`, { skip, take: 7 }));
    expect(walk).toBe(truth('departments'));
  });

  test('absences: $skip and $top', async () => {
    const walk = await walkOffsets((skip) => get(sandbox, token, `${V1}/absences`, { $skip: String(skip), $top: '60' }));
    expect(walk).toBe(truth('absences'));
  });

  test('documents: continuation token in the body, envelope in value', async () => {
    const walk = await walkTokens((continuationToken) =>
      post(sandbox, token, `${V2}/documents/list`, { pageSize: 50, ...(continuationToken && { continuationToken }) }),
    );
    expect(walk).toBe(truth('documents'));
  });

  test('documents-legacy: continuation token in the query', async () => {
    const walk = await walkTokens((continuationToken) =>
      get(sandbox, token, `${V1}/documents-legacy`, { pageSize: '33', ...(continuationToken && { continuationToken }) }),
    );
    expect(walk).toBe(truth('documents'));
  });

  test('positions: a bare array that ends on an empty page', async () => {
    const pieces: string[] = [];
    for (let skip = 0; ; skip += 32) {
      const text = await (await get(sandbox, token, `${V1}/positions`, { skip: String(skip), take: '32' })).text();
      if (text === '[]') break;
      pieces.push(text.slice(1, -1));
    }
    expect(pieces).toHaveLength(2);
    expect(pieces.join(',')).toBe(truth('positions'));
  });
});

test('the digits are such that JSON.parse would lose them', () => {
  const lossy = sandbox.records(COMPANY, 'employees').filter((text) => JSON.stringify(JSON.parse(text)) !== text);
  expect(lossy).toHaveLength(257);
  const lengths = sandbox.records(COMPANY, 'employees').map((text) => Buffer.byteLength(text));
  expect(Math.min(...lengths)).toBeGreaterThan(400);
  expect(Math.max(...lengths)).toBeLessThan(600);
});

test('pages are clamped to the size that the service allows', async () => {
  const page = (await (await get(sandbox, token, `${V1}/employees`, { skip: '0', $take: '5000' })).json()) as Result;
  expect([page.totalRecords, page.totalDisplayRecords, page.data.length]).toEqual([257, 100, 100]);
});

test('beyond the end a page is empty and the total stays', async () => {
  const page = await (await get(sandbox, token, `${V1}/employees`, { skip: '257', $take: '10' })).json();
  expect(page).toEqual({ totalRecords: 257, totalDisplayRecords: 0, data: [] });
});

test('an empty list is a list', async () => {
  const other = await accessTokenFor(sandbox, EMPTY);
  const page = await (await get(sandbox, other, `/api/companies/${EMPTY}/employees`, { skip: '0', $take: '10' })).json();
  expect(page).toEqual({ totalRecords: 0, totalDisplayRecords: 0, data: [] });
  const documents = await (await post(sandbox, other, `/api/v2.0/companies/${EMPTY}/documents/list`, { pageSize: 5 })).json();
  expect(documents).toEqual({ value: { hasNextPage: false, nextPageToken: null, data: [] } });
});

test('paging is mandatory, and its input is checked', async () => {
  const refused = await Promise.all([
    get(sandbox, token, `${V1}/employees`),
    get(sandbox, token, `${V1}/employees`, { skip: '0', take: '10' }),
    get(sandbox, token, `${V1}/employees`, { skip: '-1', $take: '10' }),
    get(sandbox, token, `${V1}/employees`, { skip: '0', $take: '0' }),
    get(sandbox, token, `${V1}/absences`, { skip: '0', take: '10' }),
    get(sandbox, token, `${V1}/positions`),
    get(sandbox, token, `${V1}/documents-legacy`),
    post(sandbox, token, `${V2}/departments/list`, { skip: 0 }),
    post(sandbox, token, `${V2}/departments/list`, { skip: 0, take: '10' }),
    post(sandbox, token, `${V2}/departments/list?skip=0&take=10`, {}),
    post(sandbox, token, `${V2}/departments/list`, [10]),
    post(sandbox, token, `${V2}/documents/list`, { continuationToken: 'x' }),
  ]);
  expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 400));
  const wrong = await Promise.all([post(sandbox, token, `${V1}/employees`, {}), get(sandbox, token, `${V1}/nothing`)]);
  expect(wrong.map(({ status }) => status)).toEqual([405, 404]);
});

test('a page token is good for its own list, for a while', async () => {
  const page = async (continuationToken?: string) =>
    post(sandbox, token, `${V2}/documents/list`, { pageSize: 5, ...(continuationToken && { continuationToken }) });
  const { value } = (await (await page()).json()) as { value: { nextPageToken: string } };
  expect((await page(value.nextPageToken)).status).toBe(200);
  expect((await page(`${value.nextPageToken}x`)).status).toBe(400);
  expect((await page('x')).status).toBe(400);
  clock.forward(60);
  const expired = await page(value.nextPageToken);
  expect(expired.status).toBe(400);
  expect(await expired.json()).toMatchObject({ error: 'invalid_page_token' });
});

test('the log shows who asked for what, without secrets', async () => {
  sandbox.requests.clear();
  await accessTokenFor(sandbox, COMPANY);
  await get(sandbox, token, `${V1}/employees`, { skip: '5', $take: '5' });
  await post(sandbox, token, `${V2}/departments/list`, { take: 3 });
  expect(sandbox.requests.all()).toEqual([
    { at: clock.now(), method: 'POST', path: '/auth/token', input: { grant_type: 'refresh_token' }, status: 200 },
    {
      at: clock.now(),
      method: 'GET',
      path: `${V1}/employees`,
      input: { skip: '5', $take: '5' },
      companyId: COMPANY,
      status: 200,
    },
    { at: clock.now(), method: 'POST', path: `${V2}/departments/list`, input: { take: 3 }, companyId: COMPANY, status: 200 },
  ]);
  expect(sandbox.requests.all('departments')).toHaveLength(1);
});
