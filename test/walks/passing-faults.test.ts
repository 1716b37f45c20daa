import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import type { Effect } from '../../src/sandbox/faults.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

// Faults that pass, in the clothes of faults that stay. Nobody waits in these tests: the clock's sleep takes no time, and a run that waits to retry is made due.

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let company: CompanyKey;
let next = 0;

const { employees, departments } = ENTRIES;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 40 }, (_, n) => ({ name: `C${n}`, employees: 35, departments: 12, documents: 35 })),
  });
  database = await testDatabase();
  const endpoints = endpointsOf({ employees, departments });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  harness = syncHarness(database.db, sandbox, endpoints, { clock: { ...systemClock, sleep: async () => {} } });
});
afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});
beforeEach(async () => {
  sandbox.faults.clear();
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
});

function fail(effect: Effect, input?: Record<string, unknown>): void {
  sandbox.faults.add(effect, { path: '/employees', times: Infinity, ...(input && { input }) });
}

/** The next attempt of a run that waits to retry. */
async function later({ id }: RunModel): Promise<RunModel> {
  await database.db.prisma.run.update({ where: { id }, data: { startAfter: new Date(0) } });
  return harness.work(id);
}

async function expectEqual(): Promise<void> {
  expect(await mirrored(database.db, 'employees', company.companyId)).toEqual(upstream(sandbox, 'employees', company.companyId));
}

const HTML = '<html><body>Maintenance</body></html>';
const answer = (status: number, type?: string, body = ''): Effect => ({
  kind: 'status',
  status,
  body,
  ...(type && { headers: { 'content-type': type } }),
});
const JSON_TYPE = 'application/json';

const NOT_OF_THE_API: [string, Effect, string][] = [
  ['200 with HTML', answer(200, 'text/html', HTML), 'malformed_response'],
  ['200 with HTML that is called JSON', answer(200, JSON_TYPE, HTML), 'malformed_response'],
  ['200 with nothing', answer(200), 'malformed_response'],
  ['200 with a line of text', answer(200, 'text/plain', 'temporarily unavailable'), 'malformed_response'],
  ['200 with half of a page', { kind: 'truncate' }, 'malformed_response'],
  ['202', answer(202, JSON_TYPE, '{}'), 'malformed_response'],
  ['302', { kind: 'status', status: 302, headers: { location: 'https://status.example.com/' } }, 'service_refused'],
  ['403 of a firewall', answer(403, 'text/html', HTML), 'service_refused'],
  ['404 of a gateway', answer(404, 'text/plain', 'default backend - 404'), 'service_refused'],
  ['400 of a proxy', answer(400, 'text/html', HTML), 'service_refused'],
  ['425', answer(425, JSON_TYPE, '{"message":"too early"}'), 'service_refused'],
  ['499', answer(499), 'service_refused'],
];

describe('what is no answer of the API is put off, and the list is mirrored once it has passed', () => {
  test.each(NOT_OF_THE_API)('%s', async (_, effect, code) => {
    fail(effect);
    const run = await harness.sync(company);
    expect(run).toMatchObject({
      status: 'queued',
      attempts: 1,
      error: { code: 'walks_failed', message: expect.stringContaining(`employees (${code})`) },
      walks: [
        { status: 'failed', error: { code } },
        { status: 'succeeded', verified: true },
      ],
    });
    expect(await later(run)).toMatchObject({ status: 'queued', attempts: 2 });
    sandbox.faults.clear();
    expect(await later(run)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, received: 35 }, {}] });
    await expectEqual();
  });
});

const REFUSALS: [string, Effect, string][] = [
  ['400', answer(400, JSON_TYPE, '{"message":"no"}'), 'service_refused'],
  ['402', answer(402, JSON_TYPE, '{"message":"no"}'), 'service_refused'],
  ['403', answer(403, JSON_TYPE, '{"message":"no"}'), 'service_refused'],
  ['404 without a body', answer(404), 'service_refused'],
  ['422', answer(422, 'application/problem+json', '{"title":"no"}'), 'service_refused'],
  ['200 with other JSON', answer(200, JSON_TYPE, '{"maintenance":true}'), 'malformed_envelope'],
];

describe('a refusal in the words of the API', () => {
  test.each(REFUSALS)('fails at once where the list never worked: %s', async (_, effect, code) => {
    fail(effect);
    expect(await harness.sync(company)).toMatchObject({
      status: 'failed',
      attempts: 0,
      walks: [{ status: 'failed', error: { code } }, { verified: true }],
    });
  });

  test.each(REFUSALS)('is put off where the list was read before: %s', async (_, effect, code) => {
    await harness.sync(company);
    fail(effect);
    const run = await harness.sync(company);
    expect(run).toMatchObject({ status: 'queued', attempts: 1, walks: [{ error: { code } }, { verified: true }] });
    sandbox.faults.clear();
    expect(await later(run)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, {}] });
    await expectEqual();
  });

  test('is put off where the list was read and not proved', async () => {
    fail({ kind: 'alter', members: { totalRecords: 3 } });
    expect(await harness.sync(company)).toMatchObject({ walks: [{ status: 'succeeded', verified: false }, {}] });
    sandbox.faults.clear();
    fail(answer(403, JSON_TYPE, '{}'));
    expect(await harness.sync(company)).toMatchObject({ status: 'queued', attempts: 1 });
  });

  test('that stays fails the run in the end, with the cause, and its rows stay', async () => {
    await harness.sync(company);
    fail(answer(403, JSON_TYPE, '{"message":"Your plan has no employees."}'));
    let run = await harness.sync(company);
    const delays: number[] = [];
    while (run.status === 'queued') {
      delays.push(new Date(run.retry_at!).getTime() - Date.now());
      run = await later(run);
    }
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 'walks_failed', message: expect.stringContaining('employees (service_refused)') },
      walks: [{ status: 'failed', error: { code: 'service_refused' } }, { verified: true }],
    });
    expect(delays.reduce((sum, delay) => sum + delay, 0)).toBeLessThan(60 * 60_000);
    await expectEqual();
  });
});

describe('a run that is put off', () => {
  const night = { trigger: 'nightly', mode: 'full' } as const;

  test('ends where the schedule comes to it: the new run walks every list, and goes on from the checkpoint', async () => {
    await harness.sync(company);
    fail(answer(403, JSON_TYPE, '{"message":"no"}'), { skip: '18' });
    const run = await harness.sync(company);
    expect(run).toMatchObject({ status: 'queued', attempts: 1, walks: [{ status: 'failed' }, { verified: true }] });
    const newer = await harness.sync(company, night);
    expect(newer.id).not.toBe(run.id);
    expect(newer).toMatchObject({
      status: 'queued',
      attempts: 1,
      walks: [{ status: 'failed', resumed: true }, { verified: true }],
    });
    expect(await harness.read(run.id)).toMatchObject({
      status: 'failed',
      error: { code: 'walks_failed', message: expect.stringContaining('employees (service_refused)') },
      walks: [{ status: 'failed', error: { code: 'service_refused' } }, { status: 'succeeded' }],
    });
    const told = await database.db.prisma.notification.findMany({ where: { companyId: company.companyId } });
    expect(told).toMatchObject([{ type: 'run_failed', details: { run_id: run.id, reason: 'walks_failed' } }]);
  });

  test('starts where a person asks, with new attempts while it is young only', async () => {
    await harness.sync(company);
    fail(answer(403, JSON_TYPE, '{"message":"no"}'));
    const run = await harness.sync(company);
    await later(run);
    expect(await harness.sync(company)).toMatchObject({ id: run.id, status: 'queued', attempts: 1 });
    const createdAt = new Date(Date.now() - 7 * 3_600_000);
    await database.db.prisma.run.update({ where: { id: run.id }, data: { createdAt } });
    for (let attempts = 2; attempts <= 8; attempts += 1)
      expect(await harness.sync(company)).toMatchObject({ id: run.id, attempts });
    expect(await harness.sync(company)).toMatchObject({ id: run.id, status: 'failed' });
  });

  test.each([
    ['half an hour by a refusal that says a day', 403, 1_800],
    ['a day by a service that is away for a day', 503, 86_400],
  ])('waits %s', async (_, status, seconds) => {
    await harness.sync(company);
    const headers = { 'content-type': JSON_TYPE, 'retry-after': '86400' };
    fail({ kind: 'status', status, headers, body: '{}' });
    const { id } = await harness.sync(company);
    const { startAfter } = await database.db.prisma.run.findUniqueOrThrow({ where: { id } });
    expect(Math.abs(startAfter.getTime() - Date.now() - seconds * 1_000)).toBeLessThan(60_000);
  });
});

test('a walk that is put off keeps its checkpoint, and a person who asks does not wait', async () => {
  fail(answer(403, 'text/html', HTML), { skip: '18' });
  const run = await harness.sync(company);
  expect(run).toMatchObject({ status: 'queued', walks: [{ pages: 2 }, {}] });
  sandbox.faults.clear();
  sandbox.requests.clear();
  const same = await harness.sync(company);
  expect(same).toMatchObject({ id: run.id, status: 'succeeded', walks: [{ verified: true, resumed: true, pages: 4 }, {}] });
  expect(sandbox.requests.all('/employees')).toHaveLength(2);
  await expectEqual();
});

test('a firewall within a chain of page tokens is no lost token: the walk goes on where it stood', async () => {
  const documents = syncHarness(database.db, sandbox, endpointsOf({ documents: ENTRIES.documents }), {
    clock: { ...systemClock, sleep: async () => {} },
  });
  await ensureMirrorTables(database.db, { endpoints: endpointsOf({ documents: ENTRIES.documents }), get: () => undefined });
  sandbox.faults.add(answer(400, 'text/html', HTML), { path: '/documents', skip: 2, times: 5 });
  const run = await documents.sync(company);
  expect(run).toMatchObject({ status: 'queued', walks: [{ pages: 2, error: { code: 'service_refused' } }] });
  await database.db.prisma.run.update({ where: { id: run.id }, data: { startAfter: new Date(0) } });
  expect(await documents.work(run.id)).toMatchObject({
    status: 'succeeded',
    walks: [{ resumed: true, passes: 1, received: 35 }],
  });
  await documents.close();
});
