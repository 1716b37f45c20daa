import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

// Lists that a company does not have. A run that waits to retry is made due, and the clock's sleep takes no time.

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
let strict: SyncHarness;
let company: CompanyKey;
let next = 0;

const { employees, departments, absences } = ENTRIES;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 30 }, (_, n) => ({ name: `C${n}`, employees: 12, departments: 12, absences: 25 })),
  });
  database = await testDatabase();
  const endpoints = endpointsOf({ employees, departments, absences: { ...absences, optional: true } });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  const clock = { ...systemClock, sleep: async () => {} };
  harness = syncHarness(database.db, sandbox, endpoints, { clock });
  strict = syncHarness(database.db, sandbox, endpointsOf({ employees, departments, absences }), { clock });
});
afterAll(async () => {
  await harness.close();
  await strict.close();
  await sandbox.stop();
  await database.close();
});
beforeEach(async () => {
  sandbox.faults.clear();
  sandbox.requests.clear();
  company = await harness.onboard(sandbox.companies[next++]!.companyId);
});

function refuse(status: number, body = '{"message":"Your plan has no absences."}', type = 'application/json'): void {
  sandbox.faults.clear();
  sandbox.faults.add(
    { kind: 'status', status, body, ...(type && { headers: { 'content-type': type } }) },
    { path: '/absences', times: Infinity },
  );
}

const absencesOf = ({ walks }: RunModel) => walks.find(({ resource }) => resource === 'absences');
const list = async () => database.db.prisma.list.findFirst({ where: { companyId: company.companyId, resource: 'absences' } });

async function later({ id }: RunModel): Promise<RunModel> {
  await database.db.prisma.run.update({ where: { id }, data: { startAfter: new Date(0) } });
  return harness.work(id);
}

async function atLast(run: RunModel): Promise<RunModel> {
  let now = run;
  while (now.status === 'queued') now = await later(now);
  return now;
}

describe('an optional list that was never received', () => {
  test.each([
    [402, '{"error":{"message":"Your plan has no absences."}}', 'application/json'],
    [403, '{"title":"Forbidden","detail":"Your plan has no absences."}', 'application/problem+json'],
    [404, '{"message":"Your plan has no absences."}', 'application/json'],
  ])('and is refused with %i is unavailable; the run succeeds and the other lists are mirrored', async (status, body, type) => {
    refuse(status, body, type);
    const run = await harness.sync(company);
    expect(run).toMatchObject({ status: 'succeeded', attempts: 0 });
    expect(absencesOf(run)).toMatchObject({
      status: 'succeeded',
      verified: false,
      unverified_reason: 'unavailable',
      service_says: 'Your plan has no absences.',
      received: 0,
    });
    expect(await list()).toMatchObject({ unavailableSince: expect.any(Date), unverifiedSince: null, lastVerifiedAt: null });
    expect(sandbox.requests.all('/absences')).toHaveLength(1);
    for (const resource of ['employees', 'departments'] as const)
      expect(await mirrored(database.db, resource, company.companyId)).toEqual(upstream(sandbox, resource, company.companyId));
  });

  test('without a body, too, and then no sentence is kept', async () => {
    refuse(404, '', '');
    expect(absencesOf(await harness.sync(company))).not.toHaveProperty('service_says');
    expect((await list())!.unavailableSince).not.toBeNull();
  });

  test.each([
    ['400', 400, '{"message":"no"}', 'application/json', 'failed'],
    ['410', 410, '{"message":"no"}', 'application/json', 'failed'],
    ['403 of a firewall', 403, '<html></html>', 'text/html', 'queued'],
    ['404 of a gateway', 404, 'no route', 'text/plain', 'queued'],
    ['503', 503, '{"message":"no"}', 'application/json', 'queued'],
  ])('and gives %s is not unavailable', async (_, status, body, type, runStatus) => {
    refuse(status, body, type);
    const run = await harness.sync(company);
    expect([run.status, absencesOf(run)!.status]).toEqual([runStatus, 'failed']);
    expect((await list())!.unavailableSince).toBeNull();
  });

  test.each([
    [404, '<html><body>Cannot GET</body></html>', 'text/html'],
    [403, 'Module not enabled', 'text/plain'],
  ])(
    'and refused with %i in other words is unavailable once it stays so, and at once from then on',
    async (status, body, type) => {
      refuse(status, body, type);
      const run = await atLast(await harness.sync(company));
      expect(run).toMatchObject({ status: 'succeeded', attempts: 5 });
      expect(absencesOf(run)).toMatchObject({ status: 'succeeded', unverified_reason: 'unavailable' });
      expect(await list()).toMatchObject({ unavailableSince: expect.any(Date), unverifiedSince: null });
      expect(await harness.sync(company, { mode: 'full' })).toMatchObject({ status: 'succeeded', attempts: 0 });
      // Where it was read once, what is no answer of the API says nothing of it.
      sandbox.faults.clear();
      expect(absencesOf(await harness.sync(company, { mode: 'full' }))).toMatchObject({ verified: true });
      refuse(status, body, type);
      expect(await atLast(await harness.sync(company, { mode: 'full' }))).toMatchObject({ status: 'failed', attempts: 8 });
    },
  );

  test('but for its first pages, which came, is not unavailable', async () => {
    sandbox.faults.add(
      { kind: 'status', status: 403, body: '{}', headers: { 'content-type': 'application/json' } },
      { path: '/absences', skip: 1, times: Infinity },
    );
    const run = await harness.sync(company);
    expect([run.status, absencesOf(run)!.status]).toEqual(['failed', 'failed']);
    expect((await list())!.unavailableSince).toBeNull();
    refuse(403);
    const again = await harness.sync(company);
    expect([again.status, absencesOf(again)!.status]).toEqual(['failed', 'failed']);
  });
});

test('through the nights: unavailable since the first, then there, then refused again after it was proved', async () => {
  refuse(403);
  await harness.sync(company, { mode: 'full' });
  const { unavailableSince } = (await list())!;
  for (let night = 2; night <= 3; night += 1) {
    sandbox.requests.clear();
    expect(await harness.sync(company, { mode: 'full' })).toMatchObject({ status: 'succeeded' });
    expect((await list())!.unavailableSince).toEqual(unavailableSince);
    expect(sandbox.requests.all('/absences')).toHaveLength(1);
  }

  sandbox.faults.clear();
  expect(absencesOf(await harness.sync(company, { mode: 'full' }))).toMatchObject({ verified: true, received: 25 });
  expect(await list()).toMatchObject({ unavailableSince: null, lastVerifiedAt: expect.any(Date), records: 25 });

  refuse(403);
  const run = await harness.sync(company, { mode: 'full' });
  expect(run).toMatchObject({ status: 'queued', attempts: 1 });
  const ended = await atLast(run);
  expect(ended).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('absences (service_refused)') } });
  expect(absencesOf(ended)).toMatchObject({
    status: 'failed',
    error: { code: 'service_refused' },
    service_says: 'Your plan has no absences.',
  });
  expect(await list()).toMatchObject({ unavailableSince: null, records: 25 });
  expect(await mirrored(database.db, 'absences', company.companyId)).toHaveLength(25);
});

test('an empty list that was proved is not unavailable when it is refused', async () => {
  sandbox.list(company.companyId, 'absences').remove(0, 25);
  expect(absencesOf(await harness.sync(company))).toMatchObject({ verified: true, received: 0 });
  refuse(403);
  expect(await harness.sync(company)).toMatchObject({ status: 'queued', attempts: 1 });
});

test('a list that is not optional fails its run, which names it; the others are mirrored', async () => {
  refuse(403);
  const run = await strict.sync(company);
  expect(run).toMatchObject({
    status: 'failed',
    error: { code: 'walks_failed', message: expect.stringMatching(/^1 of .*: absences \(service_refused\)\./) },
  });
  expect(absencesOf(run)).toMatchObject({ status: 'failed', service_says: 'Your plan has no absences.' });
  expect(await mirrored(database.db, 'employees', company.companyId)).toHaveLength(12);

  // A list that was unavailable, and that the catalogue does not call optional any more.
  await harness.sync(company);
  expect((await list())!.unavailableSince).not.toBeNull();
  expect(await strict.sync(company)).toMatchObject({ status: 'failed' });
  expect((await list())!.unavailableSince).toBeNull();
});
