import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { loadCatalogue } from '../../../src/catalogue/load-catalogue.js';
import { systemClock } from '../../../src/core/clock.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { nightSweep } from '../../../src/runs/nights.js';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.js';
import { emptyTables } from '../../support/empty-tables.js';
import { type SyncHarness, syncHarness } from '../../walks/sync-harness.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

// Runs over a sandbox, which are moved to the nights that they are of once they have ended: a night is known by when its runs were asked for.

const DAY_MS = 86_400_000;
const catalogue = loadCatalogue();
const COMPANY = randomUUID();

let admin: AdminFixture;
let sandbox: Sandbox;
let harness: SyncHarness;
/** The newest night began three hours ago, by the clock of the database, too. */
const NOW = Math.floor(Date.now() / 60_000) * 60_000;
const BEGAN = new Date(NOW - 3 * 3_600_000);
const CRON = `${BEGAN.getUTCMinutes()} ${BEGAN.getUTCHours()} * * *`;
let now = NOW;
const clock = { ...systemClock, now: () => now };

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ companyId: COMPANY, name: 'Nattevakt AS', employees: 20, departments: 3 }] });
  admin = await startAdmin(undefined, { clock });
  harness = syncHarness(admin.db, sandbox, catalogue.endpoints);
});
beforeEach(async () => {
  now = NOW;
  await emptyTables(
    admin.db,
    'muster.nights',
    'muster.runs',
    'muster.lists',
    'muster.connections',
    'mirror.companies',
    'mirror.employees',
  );
});
afterAll(async () => {
  await harness.close();
  await admin.stop();
  await sandbox.stop();
});

/** The moment so long after a night began; night 0 is the newest. */
const ofNight = (ago: number, minutes = 30) => new Date(BEGAN.getTime() - ago * DAY_MS + minutes * 60_000);
const dayOf = (ago: number) => ofNight(ago, 0).toISOString().slice(0, 10);

const sweep = (cron = CRON) =>
  nightSweep({ db: admin.db, catalogue, clock, schedule: { cron, timezone: 'UTC', spreadMinutes: 120 } })();

const nights = async (query = '') => (await admin.call('GET', `/api/nights${query}`)).json.data as Record<string, unknown>[];

async function move(runId: string, at: Date): Promise<void> {
  await admin.db.pool.query(
    `UPDATE muster.runs SET created_at = $2, started_at = $2::timestamptz + interval '1 minute', finished_at = $2::timestamptz + interval '9 minutes'
     WHERE id = $1`,
    [runId, at],
  );
}

/** A nightly run of which nothing is but its row, and that of a walk. */
async function addRun(company: CompanyKey, at: Date, { status = 'succeeded', trigger = 'nightly', walk = {} } = {}) {
  const isActive = status === 'queued' || status === 'running';
  return admin.db.prisma.run.create({
    data: {
      ...company,
      trigger,
      mode: 'full',
      status,
      createdAt: at,
      startedAt: status === 'queued' ? null : at,
      finishedAt: isActive ? null : new Date(at.getTime() + 60_000),
      walks: { create: [{ ...company, resource: 'employees', position: 0, status, ...walk }] },
    },
  });
}

test('before any run there is the newest night, of nothing', async () => {
  await sweep();
  const nothing = {
    companies_due: 0,
    runs: { finished: 0, succeeded: 0, failed: 0, cancelled: 0 },
    lists: { due: 0, verified: 0, unverified: 0 },
    changes: { inserted: 0, updated: 0, deleted: 0 },
    started_at: null,
    finished_at: null,
  };
  expect(await nights()).toEqual([{ night: dayOf(0), began_at: ofNight(0, 0).toISOString(), ended_at: null, ...nothing }]);
});

test('a company that is synced for three nights: what changed, how many rows there were, and what was proved', async () => {
  const company = await harness.onboard(COMPANY);
  const employees = sandbox.list(COMPANY, 'employees');
  const sync = async (ago: number, trigger: 'nightly' | 'manual' = 'nightly') => {
    const { id, status } = await harness.sync(company, { trigger, mode: 'full' });
    await move(id, ofNight(ago));
    return status;
  };
  expect(await sync(3)).toBe('succeeded');
  employees.insert(0);
  employees.change(5);
  employees.change(6);
  expect(await sync(2)).toBe('succeeded');
  employees.remove(0, 2);
  expect(await sync(0)).toBe('succeeded');
  employees.change(1);
  expect(await sync(0, 'manual')).toBe('succeeded');
  // The harness has another schedule than the sweep of this test.
  await admin.db.prisma.connection.updateMany({ where: company, data: { nextSyncAt: ofNight(-1) } });
  await sweep();

  const [newest, none, second, first, ...others] = await nights();
  expect(others).toEqual([]);
  expect(first).toMatchObject({ night: dayOf(3), changes: { inserted: 23, updated: 0, deleted: 0 } });
  expect(second).toMatchObject({
    night: dayOf(2),
    ended_at: ofNight(1, 0).toISOString(),
    companies_due: 1,
    runs: { finished: 1, succeeded: 1, failed: 0, cancelled: 0 },
    lists: { due: 2, verified: 2, unverified: 0 },
    changes: { inserted: 1, updated: 2, deleted: 0 },
    started_at: ofNight(2, 31).toISOString(),
    finished_at: ofNight(2, 39).toISOString(),
  });
  expect(none).toMatchObject({ night: dayOf(1), companies_due: 0, lists: { due: 0 }, started_at: null, finished_at: null });
  // The run by day did its part, and is no nightly one.
  expect(newest).toMatchObject({ companies_due: 1, runs: { finished: 1 }, changes: { updated: 1, deleted: 2 } });

  const history = (await admin.call('GET', `/api/companies/test/${COMPANY}/history`)).json;
  const night = { verified: true, inserted: 0, updated: 0, deleted: 0 };
  expect(history.data).toEqual([
    {
      resource: 'departments',
      nights: [
        { ...night, night: dayOf(0), records: 3 },
        { ...night, night: dayOf(2), records: 3 },
        { ...night, night: dayOf(3), records: 3, inserted: 3 },
      ],
    },
    {
      resource: 'employees',
      nights: [
        { ...night, night: dayOf(0), records: 19, updated: 1, deleted: 2 },
        { ...night, night: dayOf(2), records: 21, inserted: 1, updated: 2 },
        { ...night, night: dayOf(3), records: 20, inserted: 20 },
      ],
    },
  ]);
});

test('what is due and has not begun counts as due, and a night under way has no end', async () => {
  const [done, coming] = [await admin.addCompany(), await admin.addCompany()];
  await admin.addCompany({}, { paused: true });
  await addRun(done, ofNight(0), { walk: { verified: true } });
  await admin.db.prisma.connection.updateMany({ where: coming, data: { nextSyncAt: new Date(NOW + 60_000) } });
  await admin.db.prisma.connection.updateMany({ where: done, data: { nextSyncAt: ofNight(-1) } });
  await sweep();
  expect(await nights()).toMatchObject([
    { companies_due: 2, runs: { finished: 1 }, lists: { due: 3, verified: 1, unverified: 0 }, finished_at: null },
  ]);
});

test('runs count by how they ended, lists by the best that became of them, each environment for itself', async () => {
  const [a, b, c, d] = await Promise.all(Array.from({ length: 4 }, () => admin.addCompany()));
  const other = await admin.addCompany({ environment: 'production' });
  await addRun(a!, ofNight(1), { status: 'failed' });
  await addRun(a!, ofNight(1, 300), { trigger: 'manual', walk: { verified: true } });
  await addRun(b!, ofNight(1), { walk: { unverifiedReason: 'list_changed', inserted: 4 } });
  await addRun(c!, ofNight(1), { status: 'cancelled' });
  await addRun(d!, ofNight(1), { status: 'running' });
  await addRun(other, ofNight(1), { walk: { verified: true } });
  await sweep();
  const ofTest = {
    companies_due: 4,
    runs: { finished: 3, succeeded: 1, failed: 1, cancelled: 1 },
    lists: { due: 4, verified: 1, unverified: 1 },
    changes: { inserted: 4 },
    finished_at: null,
  };
  expect((await nights('?environment=test'))[1]).toMatchObject(ofTest);
  expect((await nights('?environment=production'))[1]).toMatchObject({ companies_due: 1, lists: { due: 1, verified: 1 } });
  expect((await nights())[1]).toMatchObject({
    companies_due: 5,
    lists: { due: 5, verified: 2, unverified: 1 },
    finished_at: null,
  });
});

test('a night that is over is counted until its runs have ended, and not again', async () => {
  const company = await admin.addCompany();
  const { id } = await addRun(company, ofNight(1), { status: 'running' });
  await addRun(company, ofNight(2), { walk: { verified: true } });
  // By the clock of the database the night is over, and has not been so for a day.
  await sweep();
  await admin.db.prisma.run.update({ where: { id }, data: { status: 'succeeded', finishedAt: ofNight(1, 90) } });
  await admin.db.prisma.walk.updateMany({ where: { runId: id }, data: { status: 'succeeded', verified: true } });
  await sweep();
  expect(await nights()).toMatchObject([
    { night: dayOf(0) },
    { night: dayOf(1), runs: { succeeded: 1 }, lists: { verified: 1 } },
    { night: dayOf(2), runs: { succeeded: 1 }, lists: { verified: 1 } },
  ]);
  const settled = async () => (await admin.db.prisma.night.findMany({ where: { settled: true, environment: 'test' } })).length;
  expect(await settled()).toBe(2);
  await emptyTables(admin.db, 'muster.runs');
  await sweep();
  expect((await nights()).slice(1)).toMatchObject([{ runs: { succeeded: 1 } }, { runs: { succeeded: 1 } }]);
});

test('a sweep that died goes on where it was, and two at once count the same', async () => {
  const company = await admin.addCompany();
  for (const ago of [4, 3, 2, 1, 0]) await addRun(company, ofNight(ago), { walk: { verified: true, updated: ago + 1 } });
  await Promise.all([sweep(), sweep()]);
  const whole = await nights();
  expect(whole.map(({ changes }) => (changes as { updated: number }).updated)).toEqual([1, 2, 3, 4, 5]);
  // As if it had died behind the second night, whose end it knew already.
  await admin.db.pool.query('DELETE FROM muster.nights WHERE night > $1', [dayOf(3)]);
  await sweep();
  expect(await nights()).toEqual(whole);
});

test('nights that are counted keep their beginnings under another schedule, and the next ones follow behind them', async () => {
  const company = await admin.addCompany();
  await addRun(company, ofNight(1), { walk: { verified: true } });
  await sweep();
  const before = await nights();
  const [minute, hour] = [BEGAN.getUTCMinutes(), BEGAN.getUTCHours()];
  const other = `${minute === 0 ? 1 : minute - 1} ${hour} * * *`;
  await sweep(other);
  expect(await nights()).toEqual(before);
  now = NOW + DAY_MS;
  await sweep(other);
  const begins = ofNight(-1, minute === 0 ? 1 : -1).toISOString();
  expect(await nights()).toMatchObject([
    { night: dayOf(-1), began_at: begins },
    { ...before[0], ended_at: begins, finished_at: null },
    before[1],
  ]);
});

test('so many days are shown, and no more than are kept', async () => {
  const company = await admin.addCompany();
  for (const ago of [70, 29, 0]) await addRun(company, ofNight(ago));
  await sweep();
  const counts = await Promise.all(['', '?days=', '?days=1', '?days=90'].map(async (query) => (await nights(query)).length));
  expect(counts).toEqual([30, 30, 1, 71]);
  const asked = async (path: string) => {
    const { status, json } = await admin.call('GET', path);
    return [status, json.code, json.detail];
  };
  expect(await asked('/api/nights?days=91')).toEqual([400, 'invalid_request', expect.stringContaining('must be 90 at most')]);
  const history = `/api/companies/test/${company.companyId}/history`;
  for (const days of ['91', '0', '-1', '1.5', 'x']) {
    expect((await asked(`${history}?days=${days}`)).slice(0, 2)).toEqual([400, 'invalid_request']);
    expect((await asked(`/api/nights?days=${days}`)).slice(0, 2)).toEqual([400, 'invalid_request']);
  }
  expect((await asked(`/api/companies/test/${randomUUID()}/history`)).slice(0, 2)).toEqual([404, 'company_not_found']);
});
