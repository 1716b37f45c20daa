import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { runMuster } from '../run-muster.js';

const QUEUE = {
  queue: 'runs-test' as const,
  environment: 'test' as const,
  waiting: 3,
  active: 1,
  delayed: 0,
  failed: 0,
  oldestWaitingSeconds: 40,
  repeatable: [],
};
let admin: AdminFixture;
let company: CompanyKey;
beforeAll(async () => {
  admin = await startAdmin(undefined, { queueLook: { look: async () => [QUEUE] } });
  company = await admin.addCompany();
});
afterAll(() => admin.stop());

const operate = (...args: string[]) => runMuster([...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN });

test('a hold is decided on with a reason, which the audit keeps', async () => {
  const list = { ...company, resource: 'employees', runId: randomUUID(), walkId: randomUUID() };
  const { id } = await admin.db.prisma.hold.create({ data: { ...list, count: 4, living: 5, sample: ['1'], status: 'open' } });
  const { code, ...outcome } = await operate('holds', 'reject', id, '--reason', 'They are still here.', '--json');
  expect([code, outcome.json()]).toEqual([0, [expect.objectContaining({ id, status: 'rejected' })]]);
  const entry = await admin.db.prisma.auditEntry.findFirstOrThrow({ where: { action: 'hold.reject' } });
  expect(entry.details).toEqual({ hold_id: id, reason: 'They are still here.', outcome: 'done' });
  const again = await operate('holds', 'approve', id);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('hold_not_open')]);
});

test('what the queues hold is printed', async () => {
  const { code, stdout } = await operate('queue');
  expect([code, stdout.split('\n').map((line) => line.split(/ {2,}/))]).toEqual([
    0,
    [
      ['QUEUE', 'ENVIRONMENT', 'WAITING', 'ACTIVE', 'DELAYED', 'FAILED', 'OLDEST WAITS'],
      ['runs-test', 'test', '3', '1', '0', '0', '40 s'],
      [''],
    ],
  ]);
  expect((await operate('queue', '--json')).json()).toMatchObject([
    { queue: 'runs-test', waiting: 3, oldest_waiting_seconds: 40 },
  ]);
});

test('records that could not be kept are listed without their texts, unless JSON is asked for', async () => {
  const run = await admin.db.prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full', status: 'succeeded' } });
  const list = { ...company, resource: 'employees' };
  await admin.db.prisma.list.create({ data: { ...list, lastRunId: run.id } });
  const walk = await admin.db.prisma.walk.create({
    data: { ...list, runId: run.id, position: 0, status: 'succeeded', rejected: 1 },
  });
  const text = Buffer.from('{"name":"Åse"}').toString('base64');
  await admin.db.prisma.rejectedRecord.create({
    data: { walkId: walk.id, pass: 1, page: 2, position: 7, reason: 'no_id', text },
  });
  const filters = ['--environment', 'test', '--company', company.companyId, '--resource', 'employees'];
  const { code, stdout } = await operate('rejected', ...filters);
  expect([code, stdout.split('\n').length]).toEqual([0, 3]);
  expect(stdout).toContain('no_id');
  expect(stdout).not.toContain('Åse');
  expect((await operate('rejected', ...filters, '--json')).json()).toMatchObject([
    { page: 2, position: 7, reason: 'no_id', text: '{"name":"Åse"}', company_name: `Company ${company.companyId.slice(0, 4)}` },
  ]);
  expect((await operate('rejected', '--resource', 'departments', '--json')).json()).toEqual([]);
});

test('the state of each list of a company is printed with what the service says, and companies are found by it', async () => {
  const lacking = await admin.addCompany();
  const walk = {
    ...lacking,
    resource: 'departments',
    position: 0,
    status: 'succeeded',
    finishedAt: new Date(Date.now() + 60_000),
  };
  const refused = { ...walk, unverifiedReason: 'unavailable', serviceSays: 'Your plan has no departments.' };
  const run = { ...lacking, trigger: 'manual', mode: 'full', status: 'succeeded', walks: { create: [refused] } };
  const { id } = await admin.db.prisma.run.create({ data: run });
  await admin.db.prisma.list.create({ data: { ...lacking, resource: 'departments', unavailableSince: new Date() } });

  const shown = await operate('companies', '--environment', 'test', '--company', lacking.companyId);
  expect(shown.stdout).toMatch(/^departments +0 +unavailable +\d{4}-/m);
  expect(shown.stdout).toMatch(/^departments: the service says: Your plan has no departments\.$/m);
  expect((await operate('runs', 'show', id)).stdout).toMatch(/^departments: the service says: Your plan has no departments\.$/m);
  const found = await operate('companies', '--resource', 'departments', '--state', 'unavailable', '--json');
  expect(found.json()).toMatchObject([{ company_id: lacking.companyId }]);
  expect((await operate('status')).stdout).toMatch(/^lists +.*, 1 unavailable \(/m);
  expect((await operate('companies', '--state', 'gone')).code).toBe(2);
});

test('runs say which list failed and why, or how far they are, and are filtered by reason and day', async () => {
  const busy = await admin.addCompany();
  const walk = { ...busy, position: 0, status: 'failed' };
  const error = { code: 'service_refused', message: 'It answered 403.' };
  const failed = { ...walk, resource: 'departments', error };
  const run = { ...busy, trigger: 'resync', mode: 'full' };
  await admin.db.prisma.run.create({ data: { ...run, status: 'failed', error, walks: { create: [failed] } } });
  const read = { ...walk, resource: 'employees', status: 'running', received: 40, totalRecords: 100 };
  await admin.db.prisma.run.create({ data: { ...run, status: 'running', startedAt: new Date(), walks: { create: [read] } } });

  const today = new Date().toISOString().slice(0, 10);
  const { stdout } = await operate(
    'runs',
    '--company',
    busy.companyId,
    '--environment',
    'test',
    '--trigger',
    'resync',
    '--day',
    today,
  );
  expect(stdout).toMatch(/ failed +departments: the service refused it /);
  expect(stdout).toMatch(/ running +40 % read /);
  expect((await operate('runs', '--resource', 'employees', '--trigger', 'resync', '--json')).json()).toHaveLength(1);
  expect((await operate('runs', '--day', '2024-01-01', '--json')).json()).toEqual([]);
  expect((await operate('runs', '--trigger', 'weekly')).code).toBe(2);
});
