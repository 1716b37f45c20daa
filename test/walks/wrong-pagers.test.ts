import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { endpointsOf } from './company-fixture.js';
import { syncHarness } from './sync-harness.js';

// Lists whose catalogue entry names a paging parameter, or the place of a value, otherwise than the service does.

const LENGTH = 45;
let sandbox: Sandbox;
let database: TestDatabase;
let next = 0;

beforeAll(async () => {
  const lists = ['employees', 'absences', 'documents', 'contracts', 'shifts', 'notes', 'positions', 'payslips', 'timesheets'];
  const sizes = { employees: LENGTH, ...Object.fromEntries(lists.map((list) => [list, LENGTH])) };
  sandbox = await startSandbox({ companies: Array.from({ length: 40 }, (_, n) => ({ name: `C${n}`, ...sizes })) });
  database = await testDatabase();
  const endpoints = endpointsOf(Object.fromEntries(lists.map((list) => [list, entry({ style: 'odata', size: 10 })])));
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
});
afterEach(() => sandbox.faults.clear());
afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

function entry(pager: object, more: { path?: string; fields?: object; query?: object } = {}) {
  return { method: 'GET', path: '/api/companies/{company_id}/employees', pager, ...more };
}
const at = (list: string) => ({ path: `/api/companies/{company_id}/${list}` });
const CONTRACTS = { ...at('contracts'), query: { expand: 'department' }, fields: { data: 'value.items', total: 'value.count' } };
const SHIFTS = { path: '/odata/companies/{company_id}/shifts' };
const LINKED = { data: 'value', next: '@odata.nextLink', total: '@odata.count' };

/** One run of the list, declared so, and how many requests it took. */
async function walked(resource: string, declared: object): Promise<{ run: RunModel; requests: number; companyId: string }> {
  const harness = syncHarness(database.db, sandbox, endpointsOf({ [resource]: declared }));
  const { companyId } = await harness.onboard(sandbox.companies[next++]!.companyId);
  sandbox.requests.clear();
  const run = await harness.sync({ environment: 'test', companyId });
  await harness.close();
  return { run, requests: sandbox.requests.all(`/${resource}`).length, companyId };
}

test.each<[string, string, object, RegExp]>([
  [
    'skipName',
    'employees',
    entry({ style: 'skip-take', skipName: 'offset', takeName: '$take', size: 20 }),
    /pager\.skipName \(offset\)/,
  ],
  ['skipName', 'absences', entry({ style: 'odata', skipName: 'skip', size: 10 }, at('absences')), /pager\.skipName \(skip\)/],
  [
    'skipName of a bare array',
    'notes',
    entry({ style: 'skip-take', skipName: 'offset', size: 10 }, { ...at('notes'), fields: { data: 'none' } }),
    /pager\.skipName/,
  ],
  [
    'skipName of a bare array, with pages of three records',
    'notes',
    entry({ style: 'skip-take', skipName: 'offset', size: 3 }, { ...at('notes'), fields: { data: 'none' } }),
    /pager\.skipName/,
  ],
  ['pageName', 'contracts', entry({ style: 'page-number', pageName: 'p', size: 10 }, CONTRACTS), /pager\.pageName \(p\)/],
  [
    'pageName without a total',
    'contracts',
    entry({ style: 'page-number', pageName: 'p', size: 10 }, { ...CONTRACTS, fields: { data: 'value.items', total: 'none' } }),
    /pager\.pageName/,
  ],
  [
    'tokenName',
    'documents',
    entry({ style: 'continuation', tokenName: 'token', size: 10 }, { path: '/api/companies/{company_id}/documents-legacy' }),
    /pager\.tokenName \(token\)/,
  ],
  [
    'tokenName of a cursor',
    'timesheets',
    entry(
      { style: 'continuation', tokenName: 'after', sizeName: 'limit', size: 10 },
      { ...at('timesheets'), fields: { data: 'rows', next: 'header x-next-cursor' } },
    ),
    /pager\.tokenName \(after\)/,
  ],
])('a wrong %s (%s) ends the walk within a few requests, and says what to check', async (_what, resource, declared, names) => {
  const { run, requests } = await walked(resource, declared);
  expect(run).toMatchObject({
    status: 'failed',
    walks: [
      {
        status: 'failed',
        verified: false,
        deleted: 0,
        error: { code: 'pager_misdeclared', message: expect.stringMatching(names) },
      },
    ],
  });
  expect(requests).toBeLessThanOrEqual(12);
});

test.each<[string, string, object, string]>([
  [
    'total that is the length of the page',
    'absences',
    entry({ style: 'odata', size: 10 }, { ...at('absences'), fields: { total: 'totalDisplayRecords' } }),
    'contradicting_envelope',
  ],
  [
    'next that stands under another name, with pages shorter than asked for',
    'shifts',
    entry({ style: 'next-link', size: 10 }, { ...SHIFTS, fields: { ...LINKED, next: 'nextLink', total: 'none' } }),
    'end_contradicted',
  ],
  [
    'next in the body where the Link header has it',
    'positions',
    entry(
      { style: 'next-link', sizeName: 'per_page', size: 10 },
      { ...at('positions'), fields: { data: 'none', next: 'header x-next' } },
    ),
    'end_contradicted',
  ],
  [
    'hasNext that is always false',
    'payslips',
    {
      ...entry({ style: 'continuation', in: 'body', tokenName: 'after', sizeName: 'limit', size: 10 }),
      method: 'POST',
      path: '/api/v2.0/companies/{company_id}/payslips/list',
      fields: { data: 'items', next: 'last id', hasNext: 'never' },
    },
    'end_unproved',
  ],
])('a wrong %s proves nothing, and is told so', async (what, resource, declared, reason) => {
  if (what.includes('shorter')) sandbox.faults.add({ kind: 'clamp', take: 5 }, { path: `/${resource}`, times: Infinity });
  if (what.includes('always'))
    sandbox.faults.add({ kind: 'alter', members: { never: false } }, { path: `/${resource}`, times: Infinity });
  const { run, requests } = await walked(resource, declared);
  expect(run).toMatchObject({ walks: [{ status: 'succeeded', verified: false, unverified_reason: reason, deleted: 0 }] });
  expect(requests).toBeLessThanOrEqual(20);
});

test('a hasNext that is always false does not cut off a list by position: every full page is checked', async () => {
  sandbox.faults.add({ kind: 'alter', members: { never: false } }, { path: '/absences', times: Infinity });
  const fields = { total: 'none', hasNext: 'never' };
  const { run, companyId } = await walked('absences', entry({ style: 'odata', size: 10 }, { ...at('absences'), fields }));
  expect(run).toMatchObject({ walks: [{ verified: true, received: LENGTH }] });
  expect(await mirrored(database.db, 'absences', companyId)).toEqual(upstream(sandbox, 'absences', companyId));
});

test.each<[string, string, object, RegExp]>([
  [
    'total',
    'contracts',
    entry({ style: 'page-number', size: 10 }, { ...CONTRACTS, fields: { data: 'value.items', total: 'value.sum' } }),
    /value\.sum/,
  ],
  [
    'data',
    'contracts',
    entry({ style: 'page-number', size: 10 }, { ...CONTRACTS, fields: { data: 'value.rows', total: 'value.count' } }),
    /value\.rows/,
  ],
  ['hasNext', 'absences', entry({ style: 'odata', size: 10 }, { ...at('absences'), fields: { hasNext: 'more' } }), /more/],
])('a wrong place of %s fails the walk by its name', async (_what, resource, declared, names) => {
  const { run, requests } = await walked(resource, declared);
  expect(run).toMatchObject({
    status: 'failed',
    walks: [{ error: { code: 'malformed_envelope', message: expect.stringMatching(names) } }],
  });
  expect(requests).toBeLessThanOrEqual(4);
});

test.each<[string, string, object]>([
  ['skip-take', 'employees', entry({ style: 'skip-take', takeName: '$take', size: LENGTH })],
  [
    'bare array',
    'notes',
    entry({ style: 'skip-take', size: LENGTH }, { ...at('notes'), fields: { data: 'none', total: 'header x-total-count' } }),
  ],
  ['odata', 'absences', entry({ style: 'odata', size: LENGTH }, { ...at('absences'), fields: { total: 'totalRecords' } })],
])('a list of just as many records as a page has is still verified (%s)', async (_style, resource, declared) => {
  expect((await walked(resource, declared)).run).toMatchObject({ walks: [{ verified: true, received: LENGTH }] });
});
