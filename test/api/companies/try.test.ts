import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { validateCatalogue } from '../../../src/catalogue/validate.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { type ForeignShape, startShape } from '../../support/foreign-shapes.js';
import { type AdminFixture, SILENT, startAdmin } from '../admin-fixture.js';

let service: ForeignShape;
let numbers: ForeignShape;
let admin: AdminFixture;
let company: CompanyKey;

beforeAll(async () => {
  service = await startShape('fortnox', { count: 25 });
  numbers = await startShape('fortnox', { count: 12 });
  const catalogue = validateCatalogue(
    {
      invoices: {
        method: 'GET',
        path: service.path,
        pager: { style: 'page-number', sizeName: 'limit', size: 100 },
        fields: { data: 'Invoices', total: 'MetaInformation.@TotalResources' },
        id: ['DocumentNumber'],
        privacy: { CustomerNumber: 'mask' },
      },
      lines: { method: 'GET', path: `${service.path}/{id}/lines`, pager: { style: 'odata', size: 5 }, parent: 'invoices' },
    },
    'test',
  );
  admin = await startAdmin({ test: { ...SILENT, baseUrl: service.url, bases: { numbers: numbers.url } } }, { catalogue });
  company = await admin.addCompany();
});
afterAll(async () => {
  await admin.stop();
  await Promise.all([service.stop(), numbers.stop()]);
});

const tryList = (body: object, { companyId, environment }: CompanyKey = company, headers?: Record<string, string>) =>
  admin.call('POST', `/api/companies/${environment}/${companyId}/try`, body, headers);

test('a list of the catalogue is found to be what its entry says, and nothing of it is shown or kept', async () => {
  const { status, json } = await tryList({ resource: 'invoices' });
  expect(status).toBe(200);
  expect(json).toMatchObject({ outcome: 'confirmed', samples: [] });
  expect(json.findings).toContainEqual(expect.objectContaining({ about: 'catalogue', says: "The catalogue's entry agrees." }));
  expect(parse(json.entry).invoices).toMatchObject({ pager: { style: 'page-number', pageName: 'page', sizeName: 'limit' } });
  expect(json.requests.length).toBeLessThanOrEqual(30);
  const values = service.records.flatMap((record) => Object.values(record).filter((value) => String(value).length > 6));
  for (const value of values) expect(JSON.stringify(json)).not.toContain(String(value));

  const [entry] = await admin.db.prisma.auditEntry.findMany({
    where: { ...company, action: 'company.try' },
    orderBy: { id: 'asc' },
  });
  expect(entry).toMatchObject({ actor: 'admin', details: { resource: 'invoices', samples: false, outcome: 'done' } });
  expect(await admin.db.prisma.walk.count()).toBe(0);
  expect(await admin.db.prisma.list.count()).toBe(0);
});

test('samples come as the mirror would keep them, by name and by path alike', async () => {
  const path = service.path.replace('{company_id}', company.companyId.toUpperCase());
  for (const list of [{ resource: 'invoices' }, { path }]) {
    const { json } = await tryList({ ...list, samples: true });
    expect(json.samples.map((text: string) => JSON.parse(text))).toEqual(
      service.records.slice(0, 3).map((record) => ({ ...record, CustomerNumber: expect.not.stringMatching(/^\d$/) })),
    );
    expect(json.entry).toContain('{company_id}');
  }
  const audit = await admin.db.prisma.auditEntry.findMany({
    where: { ...company, action: 'company.try' },
    orderBy: { id: 'asc' },
  });
  expect(audit.at(-1)).toMatchObject({ details: { resource: 'invoices', samples: true } });
  const kept = await tryList({ resource: 'invoices', samples: true }, company, { 'idempotency-key': 'once' });
  expect(kept).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
});

test('a list of a further host of the API is asked there, and its entry names the host', async () => {
  const before = service.requests.length;
  const { json } = await tryList({ path: numbers.path, base: 'numbers' });
  expect(json).toMatchObject({ outcome: 'confirmed' });
  expect(Object.values(parse(json.entry))[0]).toMatchObject({ base: 'numbers' });
  expect(service.requests.length).toBe(before);
});

test('where nothing fits, the report says what was seen, and no entry is given', async () => {
  const { status, json } = await tryList({ path: '/3/{company_id}/nothing' });
  expect([status, json.outcome, json.entry]).toEqual([200, 'nothing', null]);
  expect(json.findings[0].says).toBe('The service answered 404. It says: "No such resource."');
  expect(json.look_up[0]).toMatch(/^Look up the path/);
});

test.each([
  ['neither list nor path', {}, 400, 'invalid_request'],
  ['both', { resource: 'invoices', path: '/a' }, 400, 'invalid_request'],
  ['another host', { path: '//elsewhere.example/a' }, 400, 'invalid_request'],
  ['a backslash', { path: '/\\elsewhere.example/a' }, 400, 'invalid_request'],
  ['a way upwards', { path: '/a/%2e./b' }, 400, 'invalid_request'],
  ['a query in the path', { path: '/a?b=c' }, 400, 'invalid_request'],
  ['another placeholder', { path: '/a/{id}' }, 400, 'invalid_request'],
  ['a list with a parent', { resource: 'lines' }, 400, 'invalid_request'],
  ['a body without POST', { path: '/a', body: { b: 1 } }, 400, 'invalid_request'],
  ['a list of the catalogue on another host', { resource: 'invoices', base: 'numbers' }, 400, 'invalid_request'],
  ['an unknown host', { path: '/a', base: 'unheard_of' }, 422, 'environment_not_configured'],
  ['an unknown list', { resource: 'unheard_of' }, 422, 'unknown_resource'],
])('%s is refused before anything is asked', async (_, body, status, code) => {
  const before = service.requests.length;
  expect(await tryList(body)).toMatchObject({ status, json: { code } });
  expect(service.requests.length).toBe(before);
});

test('a company that is gone, paused or must authorize again is not asked for', async () => {
  const paused = await admin.addCompany({}, { paused: true });
  const ended = await admin.addCompany({}, { reauthorizationReason: 'token_refused' });
  const gone = { environment: 'test', companyId: '5f0a3c1e-0000-4000-8000-000000000000' } as const;
  const before = service.requests.length;
  expect((await tryList({ resource: 'invoices' }, paused)).json.code).toBe('company_paused');
  expect((await tryList({ resource: 'invoices' }, ended)).json.code).toBe('reauthorization_required');
  expect((await tryList({ resource: 'invoices' }, gone)).json.code).toBe('company_not_found');
  expect(service.requests.length).toBe(before);
});

test('a viewer may not ask', async () => {
  const { json } = await admin.call('POST', '/api/tokens', { name: 'viewer', role: 'viewer' });
  const headers = { authorization: `Bearer ${json.token}` };
  expect(await tryList({ resource: 'invoices' }, company, headers)).toMatchObject({ status: 403 });
});
