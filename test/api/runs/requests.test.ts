import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, writeChanges } from '../admin-fixture.js';

let admin: AdminFixture;
let company: CompanyKey;
beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
  await admin.addCompany();
  await admin.runs.request({ company, trigger: 'manual' });
});
afterAll(() => admin.stop());

const LISTS = ['companies', 'runs', 'holds', 'notifications', 'changes'];

describe('text that PostgreSQL does not take', () => {
  const NAMES = ['\0', 'a\0', '\ud800', 'Employees', '1', "x'--", 'employees '];

  test.each(NAMES)('is refused as the name of a resource: %j', async (name) => {
    const path = `/api/companies/${company.environment}/${company.companyId}`;
    const answers = [
      await admin.call('POST', `${path}/sync`, { resources: [name] }),
      await admin.call('POST', `${path}/rekey`, { resource: name }),
    ];
    // A lone surrogate has no spelling in an address.
    if (name !== '\ud800') answers.push(await admin.call('GET', `/api/changes?resource=${encodeURIComponent(name)}`));
    for (const { status, json } of answers) {
      expect([status, json.code]).toEqual([400, 'invalid_request']);
      expect(json.errors[0].message).toBe('must be the name of a resource, for example employees');
    }
  });

  test.each(['%00', 'a%00b', '%ED%A0%80', '%EF%BF%BD', 'bm9uZQ%00'])('%s fails nowhere else', async (text) => {
    const queries = LISTS.flatMap((list) =>
      ['status', 'environment', 'type', 'company_id', 'limit', 'cursor', 'after'].map((name) => `/api/${list}?${name}=${text}`),
    );
    const paths = [
      `/api/companies/test/${text}`,
      `/api/companies/${text}/${company.companyId}`,
      `/api/runs/${text}`,
      `/api/runs/${text}/events`,
      `/connect/${text}`,
      `/oauth/callback?code=${text}&state=${text}`,
    ];
    for (const path of [...queries, ...paths]) expect((await admin.call('GET', path)).status, path).toBeLessThan(500);
    for (const path of [`/api/holds/${text}/approve`, `/api/notifications/${text}/redeliver`, `/api/runs/${text}/cancel`])
      expect((await admin.call('POST', path)).status, path).toBe(400);
  });
});

describe('an empty value in a query', () => {
  test.each([
    '/api/companies?status=&environment=&limit=&cursor=',
    '/api/runs?company_id=&environment=&status=&limit=&cursor=',
    '/api/holds?status=&environment=&limit=&cursor=',
    '/api/notifications?status=&type=&environment=&company_id=&limit=&cursor=',
    '/api/changes?after=&resource=&limit=',
  ])('counts as absent: %s', async (path) => {
    const bare = await admin.call('GET', path.replace(/\?.*/, ''));
    const answer = await admin.call('GET', path);
    expect([answer.status, answer.json]).toEqual([200, bare.json]);
  });
});

describe('limit', () => {
  test.each([...LISTS])('of %s is a whole number above 0, given once', async (list) => {
    for (const limit of ['0', '00', '-1', '1.5', '5.0', '1e1', '%2B5', '%205', '0x10', 'ten', 'NaN', 'Infinity', '%00']) {
      const { status, json } = await admin.call('GET', `/api/${list}?limit=${limit}`);
      expect([status, json.code, json.errors], limit).toEqual([
        400,
        'invalid_request',
        [{ path: 'limit', message: 'must be a whole number above 0' }],
      ]);
      expect(json.detail).toBe('The request is not valid: limit: must be a whole number above 0');
    }
    const twice = await admin.call('GET', `/api/${list}?limit=1&limit=2`);
    expect([twice.status, twice.json.detail]).toEqual([400, 'The request is not valid: limit: given twice']);
  });

  test('above the most is the most, and the answer says where it goes on', async () => {
    await admin.db.pool.query(
      `INSERT INTO muster.connections (environment, company_id) SELECT 'production', gen_random_uuid() FROM generate_series(1, 501)`,
    );
    await writeChanges(
      admin.db,
      company,
      Array.from({ length: 10_001 }, (_, id) => ({ id: String(id) })),
    );
    for (const limit of ['501', '9'.repeat(400)]) {
      const companies = (await admin.call('GET', `/api/companies?environment=production&limit=${limit}`)).json;
      expect([companies.data.length, typeof companies.next_cursor]).toEqual([500, 'string']);
    }
    const changes = (await admin.call('GET', '/api/changes?limit=10001')).json;
    expect([changes.data.length, changes.next_after]).toEqual([10_000, 10_000]);
  });
});

describe('what is wrong with a request', () => {
  const right = { environment: 'test', company_id: '5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10', refresh_token: 'a-token' };

  test.each<[string, unknown, string, string]>([
    ['/companies', undefined, 'body', 'is missing'],
    ['/companies', '[]', 'body', 'must be an object'],
    ['/companies', { ...right, refresh_token: undefined }, 'refresh_token', 'is missing'],
    ['/companies', { ...right, refresh_token: 7 }, 'refresh_token', 'must be a text'],
    ['/companies', { ...right, refresh_token: null }, 'refresh_token', 'must be a text'],
    ['/companies', { ...right, refresh_token: '' }, 'refresh_token', 'must not be empty'],
    ['/companies', { ...right, environment: undefined }, 'environment', 'is missing'],
    ['/companies', { ...right, environment: 'canary' }, 'environment', 'must be production or test'],
    ['/companies', { ...right, environment: ['test'] }, 'environment', 'must be production or test'],
    ['/companies', { ...right, canary: 1 }, 'body', 'has members that this call does not know: canary'],
    ['/companies', { ...right, 'canary here': 1 }, 'body', 'has members that this call does not know'],
    ['/syncs', { status: 'canary' }, 'status', 'must be failed'],
    ['/syncs?environment=test', undefined, 'query', 'has parameters that this call does not know: environment'],
    ['/syncs', '"canary"', 'body', 'must be an object'],
    ['/companies/test/5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10/sync', { resources: 'canary' }, 'resources', 'must be a list'],
    ['/companies/test/5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10/sync', { resources: [] }, 'resources', 'must not be empty'],
    ['/companies/test/5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10/sync', { resources: [7] }, 'resources.0', 'must be a text'],
  ])('is said in plain words: %s %j', async (path, body, where, message) => {
    const { status, json } = await admin.call('POST', `/api${path}`, body);
    expect([status, json.errors]).toEqual([400, [{ path: where, message }]]);
    expect(json.detail).toBe(`The request is not valid: ${where}: ${message}`);
  });

  test.each([
    ['runs?status=canary', 'status', 'must be queued, running, succeeded, failed or cancelled'],
    ['runs?status=failed&status=failed', 'status', 'given twice'],
    ['changes?resource=employees&resource=departments', 'resource', 'given twice'],
    ['changes?after=1&after=2', 'after', 'given twice'],
    ['changes?after=canary', 'after', 'must be the next_after of an earlier answer, or 0'],
    ['runs?compnay_id=canary', 'query', 'has parameters that this call does not know: compnay_id'],
    ['runs/canary', 'id', 'must be a GUID'],
  ])('is said in plain words: %s', async (path, where, message) => {
    const { status, json } = await admin.call('GET', `/api/${path}`);
    expect([status, json.errors]).toEqual([400, [{ path: where, message }]]);
  });
});
