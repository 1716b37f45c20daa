import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { addCompany, addWalk, hoursAgo, sweepOf } from '../../runs/issue-world.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
/** Each look is a new one, unless a test stops this clock. */
let monotonic = () => performance.now() * 1_000_000;
beforeAll(async () => {
  admin = await startAdmin(undefined, { clock: { ...systemClock, monotonic: () => monotonic() } });
});
afterAll(() => admin.stop());

const overview = async (query = '') => (await admin.call('GET', `/api/overview${query}`)).json as unknown;

const unused = (environment: string) => ({
  environment,
  limit_per_second: null,
  in_flight_limit: null,
  source: 'found',
  used_last_minute: 0,
  refused_last_minute: 0,
});

const NOTHING = {
  ready: true,
  parts: { database: { ready: true } },
  companies: { active: 0, paused: 0, reauthorization_required: 0 },
  lists: { total: 0, verified: 0, late: 0, never: 0, first_proof_overdue: 0, unverified: 0, unavailable: 0 },
  stale_after_hours: 26,
  runs: { queued: 0, running: 0 },
  oldest_waiting_seconds: null,
  last_night: { finished: 0, succeeded: 0, failed: 0, verified_lists: 0 },
  last_export: null,
  holds_open: 0,
  issues_open: 0,
  issues_snoozed: 0,
  oldest_verified_at: null,
  webhook_failing_since: null,
  quiet_until: null,
  workers: 0,
  companies_last_run_failed: 0,
  estimated_seconds_left: null,
  budget: [unused('production'), unused('test')],
};

/** Moves the company's runs to before or after the last two o'clock. */
async function runsAt(company: CompanyKey, createdAt: Date, more: object = {}) {
  await admin.db.prisma.run.updateMany({ where: company, data: { createdAt, ...more } });
}

test('of nothing is all zero', async () => {
  expect(await overview()).toEqual(NOTHING);
});

test('counts what there is, of both environments or one', async () => {
  const { db } = admin;
  const { prisma } = db;
  const twoOClock = new Date();
  twoOClock.setUTCHours(2, 0, 0, 0);
  if (twoOClock.getTime() > Date.now()) twoOClock.setUTCDate(twoOClock.getUTCDate() - 1);
  const tonight = new Date(twoOClock.getTime() + 1_000);
  const before = new Date(twoOClock.getTime() - 1_000);
  const atNight = { lastVerifiedAt: tonight };

  const well = await addCompany(db);
  const failed = await addCompany(db, { lists: { employees: { provedHoursAgo: 30, unverifiedHours: 80 } } });
  const blocked = await addCompany(db, {
    reauthorizationReason: 'token_refused',
    lists: { departments: { provedHoursAgo: 40 } },
  });
  const paused = await addCompany(db, {
    paused: true,
    lists: { employees: { provedHoursAgo: 900 }, departments: { provedHoursAgo: null } },
  });
  const other = await addCompany(db, { environment: 'production' });
  const fresh = await admin.addCompany(); // no walk has opened a list of it
  await prisma.list.updateMany({ where: { companyId: { in: [well.companyId, other.companyId] } }, data: atNight });
  await prisma.list.updateMany({ where: { ...failed, resource: 'departments' }, data: { lastVerifiedAt: before } });
  await prisma.list.updateMany({ where: { ...blocked, resource: 'employees' }, data: { lastVerifiedAt: before } });
  await addWalk(db, failed, { code: 'service_refused' });
  for (const company of [well, failed, other]) await runsAt(company, tonight);
  for (const company of [blocked, paused]) await runsAt(company, before);
  for (const [company, status] of [
    [well, 'running'],
    [fresh, 'queued'],
  ] as const)
    await prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'resume', status } });
  await prisma.run.create({ data: { ...other, trigger: 'nightly', mode: 'full', status: 'queued', createdAt: tonight } });
  const walk = await prisma.walk.findFirstOrThrow({ where: well });
  const held = { ...well, resource: 'employees', runId: walk.runId, walkId: walk.id, count: 9, living: 9, sample: [] };
  await prisma.hold.createMany({ data: [held, { ...held, status: 'rejected' }] });
  // A list that has left the catalogue.
  await prisma.list.create({ data: { ...well, resource: 'shifts', lastVerifiedAt: hoursAgo(900) } });
  const seen = (name: string, seconds: number) => ({ name, seenAt: new Date(Date.now() - seconds * 1_000) });
  await prisma.worker.createMany({ data: [seen('alive', 5), seen('too', 1), seen('dead', 60)] });
  await sweepOf(db, { hasWebhook: false })();
  const failingSince = new Date(Date.now() - 60_000);
  await prisma.webhookState.updateMany({ data: { failingSince } });

  const oldest = await prisma.list.findFirstOrThrow({ where: { ...blocked, resource: 'departments' } });
  expect(await overview()).toEqual({
    ready: true,
    companies: { active: 4, paused: 1, reauthorization_required: 1 },
    lists: { total: 12, verified: 7, late: 2, never: 3, first_proof_overdue: 0, unverified: 1, unavailable: 0 },
    stale_after_hours: 26,
    runs: { queued: 2, running: 1 },
    oldest_waiting_seconds: expect.any(Number),
    last_night: { finished: 4, succeeded: 3, failed: 1, verified_lists: 4 },
    last_export: null,
    holds_open: 1,
    // Unverified and failed lists, which are late for that reason, a company that must authorize again, a hold.
    issues_open: 4,
    issues_snoozed: 0,
    oldest_verified_at: oldest.lastVerifiedAt!.toISOString(),
    webhook_failing_since: failingSince.toISOString(),
    quiet_until: null,
    workers: 2,
    parts: NOTHING.parts,
    companies_last_run_failed: 1,
    estimated_seconds_left: null,
    budget: NOTHING.budget,
  });
  expect(await overview('?environment=production')).toEqual({
    ...NOTHING,
    budget: [unused('production')],
    companies: { active: 1, paused: 0, reauthorization_required: 0 },
    lists: { total: 2, verified: 2, late: 0, never: 0, first_proof_overdue: 0, unverified: 0, unavailable: 0 },
    runs: { queued: 1, running: 0 },
    oldest_waiting_seconds: expect.any(Number),
    last_night: { finished: 1, succeeded: 1, failed: 0, verified_lists: 2 },
    oldest_verified_at: tonight.toISOString(),
    webhook_failing_since: failingSince.toISOString(),
    quiet_until: null,
    workers: 2,
  });
});

test('a list without its first proof counts as never proved, and as overdue once that should be there', async () => {
  const lists = async () => ((await overview()) as { lists: Record<string, number> }).lists;
  const before = await lists();
  const unproved = { provedHoursAgo: null };
  await addCompany(admin.db, { lists: { employees: { ...unproved, begunHoursAgo: 27 }, departments: unproved } });
  await addCompany(admin.db, { paused: true, lists: { employees: { ...unproved, begunHoursAgo: 27 } } });
  const after = await lists();
  const added = Object.fromEntries(Object.keys(after).map((name) => [name, after[name]! - before[name]!]));
  expect(added).toEqual({ total: 4, verified: 1, late: 0, never: 3, first_proof_overdue: 1, unverified: 0, unavailable: 0 });
});

test('a run waits from when it is due, and not while its company is paused', async () => {
  const { prisma } = admin.db;
  await prisma.run.updateMany({ where: { status: 'queued' }, data: { status: 'cancelled' } });
  const waits = async () => ((await overview()) as { oldest_waiting_seconds: number | null }).oldest_waiting_seconds;
  const queue = async (company: CompanyKey, seconds: number) =>
    prisma.run.create({
      data: { ...company, trigger: 'manual', mode: 'full', startAfter: new Date(Date.now() - seconds * 1_000) },
    });
  await queue(await addCompany(admin.db, { paused: true }), 9_000);
  await queue(await addCompany(admin.db), -9_000);
  expect(await waits()).toBeNull();
  await queue(await addCompany(admin.db), 400);
  await queue(await addCompany(admin.db), 100);
  const seconds = (await waits())!;
  expect(seconds).toBeGreaterThanOrEqual(400);
  expect(seconds).toBeLessThan(9_000);
});

test('says when a part is missing', async () => {
  admin.readiness.push({ name: 'queue', check: () => Promise.reject(new Error('away')) });
  expect(await overview()).toMatchObject({ ready: false });
  admin.readiness.pop();
  expect(await overview()).toMatchObject({ ready: true });
});

test('is counted once for everybody who looks within some seconds', async () => {
  const now = performance.now() * 1_000_000;
  monotonic = () => now;
  const first = await overview();
  await admin.addCompany();
  expect(await overview()).toEqual(first);
  monotonic = () => now + 2_001;
  expect(await overview()).not.toEqual(first);
});

test('takes no other parameter', async () => {
  const answers = await Promise.all(
    ['?environment=moon', '?company=1'].map((query) => admin.call('GET', `/api/overview${query}`)),
  );
  expect(answers.map(({ status, json }) => [status, json.code])).toEqual([
    [400, 'invalid_request'],
    [400, 'invalid_request'],
  ]);
});
