import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Company, presentCompanies } from '../../../src/api/companies/company-model.js';
import { Run } from '../../../src/api/runs/run-model.js';
import { systemClock } from '../../../src/core/clock.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { MusterError } from '../../../src/core/errors.js';
import { Connections } from '../../../src/oauth/connections.js';
import { notQuiet } from '../../support/quiet.js';
import { ENTRIES, endpointsOf } from '../../walks/company-fixture.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

const pathOf = ({ environment, companyId }: CompanyKey) => `/api/companies/${environment}/${companyId}`;
const audit = ({ companyId }: CompanyKey) =>
  admin.db.prisma.auditEntry.findMany({
    where: { companyId },
    orderBy: { id: 'asc' },
    select: { action: true, actor: true, details: true },
  });

describe('POST /api/companies', () => {
  const body = (companyId: string) => ({ environment: 'test', company_id: companyId, refresh_token: 'a-refresh-token' });

  test('onboards a company and starts its first sync', async () => {
    const companyId = randomUUID();
    const answer = await admin.call('POST', '/api/companies', body(companyId.toUpperCase()));
    expect(answer.status).toBe(201);
    expect(Company.parse(answer.json)).toMatchObject({
      environment: 'test',
      company_id: companyId,
      status: 'active',
      resources: [
        { resource: 'departments', state: 'never', last_run_id: null },
        { resource: 'employees', state: 'never' },
      ],
    });
    const runs = await admin.runs.list({ companyId, limit: 10 });
    expect(runs.data).toMatchObject([{ trigger: 'onboarding', status: 'queued' }]);
    expect(await audit({ environment: 'test', companyId })).toEqual([
      { actor: 'admin', action: 'company.onboard', details: { outcome: 'done' } },
    ]);
  });

  test('replaces the token of a company that must authorize again', async () => {
    const company = await admin.addCompany({}, { reauthorizationReason: 'token_refused' });
    const answer = await admin.call('POST', '/api/companies', body(company.companyId));
    expect(answer.status).toBe(200);
    expect(answer.json.status).toBe('active');
    expect((await admin.runs.list({ companyId: company.companyId, limit: 1 })).data[0]?.trigger).toBe('reauthorization');
  });

  test('counts as done when the company is paused and so is not synced', async () => {
    const company = await admin.addCompany({}, { reauthorizationReason: 'token_refused', paused: true });
    const answer = await admin.call('POST', '/api/companies', body(company.companyId));
    expect([answer.status, answer.json.status]).toEqual([200, 'paused']);
  });

  test.each([
    ['already_onboarded', 409],
    ['onboarding_in_progress', 409],
    ['token_refused', 422],
    ['token_for_another_company', 422],
    ['environment_not_configured', 422],
    ['service_unreachable', 502],
  ] as const)('says %s with %i', async (code, status) => {
    const companyId = randomUUID();
    const logged = admin.log().length;
    admin.refusal = new MusterError(code, 'What went wrong.');
    const answer = await admin.call('POST', '/api/companies', body(companyId));
    admin.refusal = undefined;
    expect(answer.headers.get('content-type')).toMatch('application/problem+json');
    expect([answer.status, answer.json]).toMatchObject([status, { code, status, detail: 'What went wrong.' }]);
    expect(admin.log().slice(logged).includes('A request failed')).toBe(status >= 500);
    expect(await audit({ environment: 'test', companyId })).toMatchObject([{ details: { outcome: code } }]);
    expect((await admin.runs.list({ companyId, limit: 1 })).data).toEqual([]);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['no environment', { environment: undefined }, 'environment'],
    ['another environment', { environment: 'staging' }, 'environment'],
    ['no GUID', { company_id: 'acme' }, 'company_id'],
    ['a number for a GUID', { company_id: 7 }, 'company_id'],
    ['no refresh token', { refresh_token: undefined }, 'refresh_token'],
    ['an empty refresh token', { refresh_token: '' }, 'refresh_token'],
    ['a refresh token with a line break', { refresh_token: 'two\nlines' }, 'refresh_token'],
    ['an object for a refresh token', { refresh_token: { $ne: 1 } }, 'refresh_token'],
    ['a member too many', { refreshtoken: 'x' }, 'body'],
  ])('refuses %s', async (_what, change, path) => {
    const answer = await admin.call('POST', '/api/companies', { ...body(randomUUID()), ...change });
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
    expect(answer.json.errors.map((error: { path: string }) => error.path)).toEqual([path]);
  });
});

describe('GET /api/companies/{environment}/{company_id}', () => {
  test('shows exactly what the contract names', async () => {
    const company = await admin.addCompany();
    const runId = randomUUID();
    await admin.db.prisma.list.createMany({
      data: [
        { ...company, resource: 'employees', records: 37, lastRunId: runId, lastVerifiedAt: new Date('2026-01-02T03:04:05Z') },
        { ...company, resource: 'departments' },
        // The same company_id in the other environment is another company.
        { ...company, environment: 'production', resource: 'employees' },
      ],
    });
    const times = { expiresAt: new Date('2026-01-02T04:00:00Z'), refreshedAt: new Date('2026-01-02T03:30:00Z') };
    await admin.db.prisma.token.update({ where: { environment_companyId: company }, data: times });
    const answer = await admin.call('GET', pathOf({ ...company, companyId: company.companyId.toUpperCase() }));
    expect([answer.status, Company.parse(answer.json)]).toEqual([200, answer.json]);
    expect(answer.json).toEqual({
      environment: 'test',
      company_id: company.companyId,
      name: `Company ${company.companyId.slice(0, 4)}`,
      status: 'active',
      paused: false,
      grant: { number: 1, authorized_at: expect.any(String) },
      token: { expires_at: '2026-01-02T04:00:00.000Z', refreshed_at: '2026-01-02T03:30:00.000Z' },
      resources: [
        {
          resource: 'departments',
          records: 0,
          last_verified_at: null,
          last_run_id: null,
          state: 'never',
          since: expect.any(String),
          reason: 'no_walk_yet',
        },
        {
          resource: 'employees',
          records: 37,
          last_verified_at: '2026-01-02T03:04:05.000Z',
          last_run_id: runId,
          state: 'late',
          since: '2026-01-03T05:04:05.000Z',
          reason: 'no_walk_since',
        },
      ],
      next_sync_at: null,
      quiet_hours: null,
    });
  });

  test('shows the lists of the catalogue, and one that has left it again when it comes back', async () => {
    const company = await admin.addCompany();
    const list = { ...company, records: 1, lastVerifiedAt: new Date('2026-01-02T03:04:05Z') };
    await admin.db.prisma.list.createMany({
      data: ['absences', 'employees'].map((resource) => ({ ...list, resource })),
    });
    const answer = await admin.call('GET', pathOf(company));
    expect(answer.json.resources.map(({ resource }: { resource: string }) => resource)).toEqual(['departments', 'employees']);

    const endpoints = endpointsOf({ employees: ENTRIES.employees, absences: ENTRIES.absences });
    const connectLinks = { reauthorizationLinks: async () => new Map() };
    const source = {
      db: admin.db,
      clock: systemClock,
      quiet: notQuiet,
      catalogue: { endpoints },
      connectLinks,
      staleAfterHours: 26,
    };
    const [model] = await presentCompanies(source, [(await new Connections(admin.db, systemClock).find(company))!]);
    expect(model?.resources).toMatchObject([
      { resource: 'absences', records: 1, last_verified_at: '2026-01-02T03:04:05.000Z' },
      { resource: 'employees' },
    ]);
  });

  test('says of each list in which state it is, since when, why, and what the service says; companies are found by it', async () => {
    const company = await admin.addCompany();
    const ended = (resource: string, hour: number, walk: object) => ({
      data: {
        ...company,
        trigger: 'nightly',
        mode: 'full',
        status: 'failed',
        walks: { create: [{ ...company, resource, position: 0, finishedAt: new Date(Date.UTC(2027, 0, 1, hour)), ...walk }] },
      },
    });
    const failed = { status: 'failed', error: { code: 'service_refused', message: 'x' } };
    for (const [hour, walk] of [
      { status: 'succeeded', verified: true },
      failed,
      { ...failed, serviceSays: '<b>Not</b> licensed.' },
    ].entries())
      await admin.db.prisma.run.create(ended('employees', hour, walk));
    const unavailable = { status: 'succeeded', unverifiedReason: 'unavailable', serviceSays: 'No departments.' };
    await admin.db.prisma.run.create(ended('departments', 1, unavailable));
    await admin.db.prisma.list.createMany({
      data: [
        { ...company, resource: 'employees', lastVerifiedAt: new Date(Date.UTC(2027, 0, 1)) },
        { ...company, resource: 'departments', unavailableSince: new Date(Date.UTC(2026, 5, 1)) },
      ],
    });
    expect((await admin.call('GET', pathOf(company))).json.resources).toMatchObject([
      {
        resource: 'departments',
        state: 'unavailable',
        since: '2026-06-01T00:00:00.000Z',
        reason: 'unavailable',
        service_says: 'No departments.',
      },
      {
        resource: 'employees',
        state: 'failed',
        since: '2027-01-01T01:00:00.000Z',
        reason: 'service_refused',
        service_says: '<b>Not</b> licensed.',
      },
    ]);
    const found = async (query: string) => {
      const { json } = await admin.call('GET', `/api/companies?${query}`);
      return json.data.some(({ company_id }: { company_id: string }) => company_id === company.companyId);
    };
    expect(await found('resource=employees&state=failed')).toBe(true);
    expect(await found('state=unavailable&status=active')).toBe(true);
    expect(await found('resource=employees&sort=worst')).toBe(true);
    expect(await found('resource=employees&state=unavailable')).toBe(false);
    expect(await found('resource=nothere&state=never')).toBe(false);
    expect((await admin.call('GET', '/api/companies?state=wrong')).status).toBe(400);
  });

  test('says why and where to authorize again, and only then', async () => {
    const company = await admin.addCompany({}, { reauthorizationReason: 'token_refused' });
    const answer = await admin.call('GET', pathOf(company));
    expect(answer.json).toMatchObject({
      status: 'reauthorization_required',
      reauthorization_reason: 'token_refused',
      authorize_url: expect.stringMatching(/^https:\/\/muster\.example\/connect\/[\w-]{43}$/),
    });
  });

  test.each([
    ['an unknown company', 'test/5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10', 404, 'company_not_found'],
    ['a bad GUID', 'test/acme', 400, 'invalid_request'],
    ['a bad environment', 'staging/5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10', 400, 'invalid_request'],
    ['a path out of the folder', 'test/%2e%2e%2f%2e%2e', 400, 'invalid_request'],
    ['a NUL', 'test/5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a1%00', 400, 'invalid_request'],
  ])('refuses %s', async (_what, path, status, code) => {
    const answer = await admin.call('GET', `/api/companies/${path}`);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
  });
});

describe('GET /api/companies', () => {
  let own: AdminFixture;
  beforeAll(async () => {
    own = await startAdmin();
    for (let i = 0; i < 3; i++) await own.addCompany();
    await own.addCompany({ environment: 'production' }, { paused: true });
  });
  afterAll(() => own.stop());

  test('gives every company once, page by page', async () => {
    const seen: string[] = [];
    let cursor: string | null = '';
    let pages = 0;
    do {
      const { status, json } = await own.call('GET', `/api/companies?limit=2${cursor && `&cursor=${cursor}`}`);
      expect(status).toBe(200);
      expect(json.data.length).toBeLessThanOrEqual(2);
      for (const company of json.data) {
        expect(Company.parse(company)).toEqual(company);
        expect(company.name).toMatch(/^Company /);
        seen.push(company.company_id);
      }
      cursor = json.next_cursor;
      pages += 1;
    } while (cursor !== null && pages < 9);
    expect([seen.length, new Set(seen).size, pages]).toEqual([4, 4, 2]);
  });

  test.each([
    ['', 4],
    ['?environment=test', 3],
    ['?status=paused', 1],
    ['?status=paused&environment=test', 0],
    ['?limit=500', 4],
  ])('filters by %s', async (query, count) => {
    const { json } = await own.call('GET', `/api/companies${query}`);
    expect([json.data.length, json.next_cursor]).toEqual([count, null]);
  });

  test.each([
    'limit=0',
    'limit=ten',
    'limit=1&limit=2',
    'status=gone',
    'environment=staging',
    'cursor=%20%27--',
    'cursor=garbage',
  ])('refuses %s', async (query) => {
    const answer = await own.call('GET', `/api/companies?${query}`);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });
});

describe('POST …/sync', () => {
  test('asks for a run, and gives the same one while it has not ended', async () => {
    const company = await admin.addCompany();
    const first = await admin.call('POST', `${pathOf(company)}/sync`, { resources: ['employees'], mode: 'full' });
    expect(first.status).toBe(202);
    expect(Run.parse(first.json.run)).toMatchObject({
      company_id: company.companyId,
      trigger: 'manual',
      mode: 'full',
      status: 'queued',
    });
    expect(first.json.run.walks.map((walk: { resource: string }) => walk.resource)).toEqual(['employees']);
    const second = await admin.call('POST', `${pathOf(company)}/sync`);
    expect([second.status, second.json.run.id]).toEqual([202, first.json.run.id]);
    expect(await audit(company)).toMatchObject([
      { action: 'company.sync', details: { mode: 'full', resources: ['employees'] } },
      {},
    ]);
  });

  test('takes an empty body that calls itself JSON', async () => {
    const company = await admin.addCompany();
    const answer = await admin.call('POST', `${pathOf(company)}/sync`, '');
    expect([answer.status, answer.json.run.mode]).toEqual([202, 'resume']);
  });

  test.each<[string, object, unknown, number, string]>([
    ['a paused company', { paused: true }, {}, 409, 'company_paused'],
    ['a company without authorization', { reauthorizationReason: 'token_refused' }, {}, 409, 'reauthorization_required'],
    ['an unknown resource', {}, { resources: ['cats'] }, 422, 'unknown_resource'],
    ['no resource', {}, { resources: [] }, 400, 'invalid_request'],
    ['an unknown mode', {}, { mode: 'fast' }, 400, 'invalid_request'],
    ['a misspelt member', {}, { resource: ['employees'] }, 400, 'invalid_request'],
    ['a list', {}, ['employees'], 400, 'invalid_request'],
  ])('refuses %s', async (_what, state, body, status, code) => {
    const answer = await admin.call('POST', `${pathOf(await admin.addCompany({}, state))}/sync`, body);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
  });
});

describe('pause, resume, DELETE', () => {
  test('pauses and resumes, and a paused company has no next sync', async () => {
    const company = await admin.addCompany();
    const nextSyncAt = new Date('2026-03-04T02:00:00Z');
    await admin.db.prisma.connection.updateMany({ where: company, data: { nextSyncAt } });
    const paused = await admin.call('POST', `${pathOf(company)}/pause`);
    expect([paused.status, paused.json.status, paused.json.next_sync_at]).toEqual([200, 'paused', null]);
    const resumed = await admin.call('POST', `${pathOf(company)}/resume`);
    expect([resumed.status, resumed.json.status, resumed.json.next_sync_at]).toEqual([200, 'active', nextSyncAt.toISOString()]);
    expect((await audit(company)).map(({ action }) => action)).toEqual(['company.pause', 'company.resume']);
  });

  test('removes a company and keeps the audit', async () => {
    const company = await admin.addCompany();
    const removed = await admin.call('DELETE', pathOf(company));
    expect([removed.status, removed.text]).toEqual([204, '']);
    expect((await admin.call('GET', pathOf(company))).status).toBe(404);
    expect(await audit(company)).toMatchObject([{ actor: 'admin', action: expect.stringMatching(/^company\.remove/) }]);
  });

  test('pauses what must authorize again, and shows that beside its status', async () => {
    const company = await admin.addCompany({}, { reauthorizationReason: 'token_refused' });
    // The same company_id in the other environment is another company.
    await admin.addCompany({ ...company, environment: 'production' });
    const status = 'reauthorization_required';
    expect((await admin.call('GET', pathOf(company))).json).toMatchObject({ status, paused: false });
    const answer = await admin.call('POST', `${pathOf(company)}/pause`);
    expect([answer.status, answer.json]).toMatchObject([200, { status, paused: true }]);
    const { json } = await admin.call('GET', pathOf({ ...company, environment: 'production' }));
    expect(json).toMatchObject({ status: 'active', paused: false });
  });

  test('does not resume what must authorize again', async () => {
    const answer = await admin.call(
      'POST',
      `${pathOf(await admin.addCompany({}, { reauthorizationReason: 'token_refused' }))}/resume`,
    );
    expect([answer.status, answer.json.code]).toEqual([409, 'reauthorization_required']);
  });

  test.each([
    ['POST', '/sync'],
    ['POST', '/pause'],
    ['POST', '/resume'],
    ['DELETE', ''],
  ])('%s %s of an unknown company is 404, and in the audit', async (method, verb) => {
    const companyId = randomUUID();
    const answer = await admin.call(method, `/api/companies/test/${companyId}${verb}`);
    expect([answer.status, answer.json.code]).toEqual([404, 'company_not_found']);
    expect(await audit({ environment: 'test', companyId })).toMatchObject([{ details: { outcome: 'company_not_found' } }]);
  });
});

test('an onboarding that fails behind its store says that the tokens are stored', async () => {
  const company = { environment: 'test', company_id: randomUUID() };
  await admin.db.pool.query(`
    CREATE FUNCTION refuse_done() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$;
    CREATE TRIGGER refuse_done BEFORE INSERT ON muster.audit FOR EACH ROW EXECUTE FUNCTION refuse_done()`);
  const answer = await admin.call('POST', '/api/companies', { ...company, refresh_token: 'given-token' });
  admin.refusal = new MusterError('token_not_stored', 'The new refresh token is safe in quarantine.');
  const refused = await admin.call('POST', '/api/companies', { ...company, company_id: randomUUID(), refresh_token: 'given-2' });
  admin.refusal = undefined;
  await admin.db.pool.query('DROP FUNCTION refuse_done CASCADE');
  expect([answer.status, answer.json.detail]).toEqual([500, expect.stringContaining('its tokens are stored')]);
  // And what refused the onboarding is told even if it cannot be put on record.
  expect([refused.status, refused.json]).toEqual([503, expect.objectContaining({ code: 'token_not_stored' })]);
});
