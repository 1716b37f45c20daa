import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/db/connection/database.js';
import { countRefusedTokens } from '../../src/observability/metrics.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { hoursAgo, metricsOf } from './metrics-of.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

const ours = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('muster_') && !/^muster_(?:build_info|database_size_bytes)/.test(line))
    .toSorted();
const NIGHT = ['failed', 'held', 'late', 'never', 'on_time', 'proved', 'reauthorization_required'];
const night = (counts: Readonly<Record<string, number>>) =>
  NIGHT.map((state) => `muster_night_lists{environment="test",state="${state}"} ${counts[state] ?? 0}`);
const company = (n: number) => ({ environment: 'test', companyId: `00000000-0000-4000-8000-00000000000${n}` });

test('they show the database as it is at the scrape', async () => {
  const { db } = database;
  const { prisma, pool } = db;
  const metrics = metricsOf(db, ['employees', 'departments']);
  expect(ours(await metrics.metrics())).toEqual([
    'muster_hold_oldest_seconds 0',
    'muster_holds_open 0',
    'muster_lists_unverified 0',
    ...['late', 'never', 'unavailable', 'verified'].map((proof) => `muster_lists{proof="${proof}"} 0`),
    'muster_night_age_seconds 10800',
    ...night({}),
    'muster_night_under_way{environment="test"} 0',
    'muster_notifications{status="failed"} 0',
    'muster_notifications{status="pending"} 0',
    'muster_queue_waiting{queue="runs"} 3',
    'muster_ready{part="database"} 1',
    'muster_ready{part="queue"} 0',
    'muster_run_longest_wait_seconds 0',
    'muster_runs{status="queued"} 0',
    'muster_runs{status="running"} 0',
    'muster_tokens_due 0',
    'muster_tokens_overdue 0',
    'muster_workers 0',
  ]);
  const past = new Date(Date.now() - 3_600_000);
  const token = { create: { refreshToken: 'encrypted', expiresAt: past, refreshAt: past } };
  await prisma.connection.create({ data: { ...company(1), createdAt: hoursAgo(48), token } });
  await prisma.connection.create({
    data: { ...company(2), createdAt: hoursAgo(48), reauthorizationReason: 'token_refused', token },
  });
  await prisma.connection.create({ data: { ...company(3), paused: true } });
  const run = { trigger: 'nightly', mode: 'full' };
  await prisma.run.create({ data: { ...company(1), ...run, status: 'succeeded', finishedAt: past } });
  await prisma.run.create({ data: { ...company(1), ...run, status: 'failed', finishedAt: past } });
  await prisma.run.create({ data: { ...company(1), ...run, status: 'queued', startAfter: hoursAgo(-1) } });
  await prisma.list.create({ data: { ...company(1), resource: 'employees', lastVerifiedAt: past } });
  await prisma.list.create({ data: { ...company(1), resource: 'departments' } });
  await prisma.list.create({ data: { ...company(3), resource: 'employees' } });
  await prisma.requestBudget.create({ data: { environment: 'test', rate: 19.2 } });
  const share = { wanted: 4, held: 4, waiting: 3, used: 500, refused: 2 };
  await prisma.requestShare.create({ data: { environment: 'test', worker: 'a', ...share } });
  await prisma.requestShare.create({ data: { environment: 'test', worker: 'gone', ...share, seenAt: past } });
  await prisma.notification.create({ data: { ...company(1), type: 'run_failed', change: '1' } });
  await prisma.notification.create({ data: { ...company(1), type: 'run_failed', change: '2', status: 'failed' } });
  const issue = { environment: 'test', severity: 'warning', companies: 3, told: 3 };
  for (const resource of ['employees', 'departments'])
    await prisma.issue.create({ data: { ...issue, cause: 'service_error', resource } });
  await prisma.issue.create({ data: { ...issue, cause: 'list_late', status: 'resolved', resolvedAt: past } });
  await prisma.worker.createMany({
    data: [
      { name: 'alive', eventLoopDelay: 0.25 },
      { name: 'dead', seenAt: past, eventLoopDelay: 7 },
    ],
  });
  const lines = ours(await metrics.metrics());
  const age = lines.find((line) => line.startsWith('muster_oldest_verified_seconds '))!.split(' ')[1];
  expect(Number(age)).toBeCloseTo(3_600, -2);
  expect(lines).toEqual(
    [
      'muster_companies{status="active"} 1',
      'muster_companies{status="paused"} 1',
      'muster_companies{status="reauthorization_required"} 1',
      'muster_companies_last_run{status="failed"} 1',
      'muster_runs{status="queued"} 1',
      'muster_runs{status="running"} 0',
      'muster_tokens_due 1',
      'muster_tokens_overdue 1',
      `muster_oldest_verified_seconds ${age}`,
      'muster_lists_unverified 5',
      'muster_lists{proof="verified"} 1',
      'muster_lists{proof="late"} 0',
      'muster_lists{proof="never"} 5',
      'muster_lists{proof="unavailable"} 0',
      ...['departments', 'employees'].flatMap((resource) =>
        ['active', 'paused', 'reauthorization_required'].flatMap((status) => {
          const isProved = resource === 'employees' && status === 'active';
          const counts = { failed: 0, held: 0, late: 0, never: isProved ? 0 : 1, on_time: isProved ? 1 : 0, unavailable: 0 };
          return Object.entries(counts).map(
            ([state, count]) =>
              `muster_lists_by_state{environment="test",resource="${resource}",company="${status}",state="${state}"} ${count}`,
          );
        }),
      ),
      'muster_hold_oldest_seconds 0',
      'muster_holds_open 0',
      'muster_night_age_seconds 10800',
      ...night({ proved: 1, never: 1, reauthorization_required: 2 }),
      'muster_night_under_way{environment="test"} 1',
      'muster_ready{part="database"} 1',
      'muster_ready{part="queue"} 0',
      'muster_run_longest_wait_seconds 0',
      'muster_issues{severity="warning",cause="service_error",environment="test"} 2',
      'muster_notifications{status="pending"} 1',
      'muster_notifications{status="failed"} 1',
      'muster_queue_waiting{queue="runs"} 3',
      'muster_request_limit{environment="test"} 19.2',
      'muster_requests_last_minute{environment="test"} 500',
      'muster_requests_refused_last_minute{environment="test"} 2',
      'muster_requests_waiting{environment="test"} 3',
      'muster_worker_event_loop_delay_seconds 0.25',
      'muster_workers 1',
    ].toSorted(),
  );
  await pool.query('TRUNCATE muster.connections, muster.lists CASCADE');
  expect(ours(await metrics.metrics()).join()).not.toMatch(/muster_companies|muster_oldest/);
});

test('a list that has left the catalogue does not count, and counts again when it comes back', async () => {
  const { prisma } = database.db;
  await prisma.connection.create({ data: company(1) });
  await prisma.list.createMany({
    data: [
      { ...company(1), resource: 'absences', lastVerifiedAt: hoursAgo(500) },
      { ...company(1), resource: 'documents' },
      { ...company(1), resource: 'employees', lastVerifiedAt: hoursAgo(2) },
    ],
  });
  const freshness = async (resources: string[]) => {
    const metrics = metricsOf(database.db, resources);
    const value = async (name: string) => (await metrics.getSingleMetric(name)!.get()).values[0]!.value;
    const age = await value('muster_oldest_verified_seconds');
    return { hours: Math.round(age / 3_600), unverified: await value('muster_lists_unverified') };
  };
  expect(await freshness(['employees'])).toEqual({ hours: 2, unverified: 0 });
  expect(await freshness(['absences', 'documents', 'employees'])).toEqual({ hours: 500, unverified: 1 });
});

test('tokens and lists of an environment that has no settings do not count: nobody refreshes or syncs them', async () => {
  const { prisma } = database.db;
  await prisma.connection.deleteMany();
  const token = { create: { refreshToken: 'encrypted', expiresAt: hoursAgo(1), refreshAt: hoursAgo(1) } };
  await prisma.connection.create({ data: { ...company(1), token } });
  const lines = async (environment: 'production' | 'test') =>
    ours(await metricsOf(database.db, ['employees'], { environments: [environment] }).metrics());
  const expired = (count: number) => [`muster_tokens_due ${count}`, `muster_tokens_overdue ${count}`];
  expect(await lines('test')).toEqual(expect.arrayContaining(expired(1)));
  expect((await lines('test')).join()).toContain('muster_lists_by_state');
  expect(await lines('production')).toEqual(expect.arrayContaining(expired(0)));
  expect((await lines('production')).join()).not.toContain('muster_lists_by_state');
});

test('what cannot be read is left out, and the rest is there', async () => {
  const db = openDatabase({ url: database.url });
  const metrics = metricsOf(db);
  expect(ours(await metrics.metrics())).toContain('muster_holds_open 0');
  await db.close();
  const text = await metrics.metrics();
  expect(ours(text)).toEqual([
    'muster_night_age_seconds 10800',
    'muster_queue_waiting{queue="runs"} 3',
    'muster_ready{part="database"} 1',
    'muster_ready{part="queue"} 0',
  ]);
  expect(text).toContain('process_cpu_seconds_total');
});

test('what hangs is left out at the deadline, and the next scrape does not wait for it', async () => {
  const { prisma } = database.db;
  let hangs = true;
  const hanging = new Proxy(prisma, {
    get: (target, key) => (key === '$transaction' && hangs ? () => new Promise(() => {}) : Reflect.get(target, key)),
  });
  let end = () => {};
  const sleep = () => new Promise<void>((resolve) => (end = resolve));
  const waitingJobs = () => (hangs ? new Promise<never>(() => {}) : Promise.resolve({ runs: 3 }));
  const metrics = metricsOf({ ...database.db, prisma: hanging }, [], { clock: { sleep }, waitingJobs });
  const scrape = metrics.metrics();
  setImmediate(() => end()); // what does not hang here has answered by then
  expect(ours(await scrape)).toEqual([
    'muster_night_age_seconds 10800',
    'muster_ready{part="database"} 1',
    'muster_ready{part="queue"} 0',
  ]);
  hangs = false;
  const lines = ours(await metrics.metrics());
  expect(lines).toContain('muster_holds_open 0');
  expect(lines).toContain('muster_queue_waiting{queue="runs"} 3');
});

test('docs/metrics.md lists them, with their labels and the same words', async () => {
  const document = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const rows = [...document.matchAll(/^\| `(muster_\w+)` \| (\w+) \| ((?:`\w+`(?:, )?)*) ?\| (.+) \|$/gm)].map(
    ([, name, type, labels, help]) => ({
      name,
      type,
      help,
      labels: [...labels!.matchAll(/\w+/g)].map(String),
    }),
  );
  const metrics = metricsOf(database.db);
  countRefusedTokens(metrics);
  const registered = (await metrics.getMetricsAsJSON())
    .filter(({ name }) => name.startsWith('muster_'))
    .map(({ name, type, help }) => ({
      name,
      type,
      help,
      labels: (metrics.getSingleMetric(name) as unknown as { labelNames: string[] }).labelNames,
    }));
  expect(rows).toEqual(registered);
});
