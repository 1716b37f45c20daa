import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { nightsAround } from '../../../src/runs/schedule.js';
import { addCompany, addWalk, hoursAgo } from '../../runs/issue-world.js';
import { emptyTables } from '../../support/empty-tables.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
let beganHoursAgo: number;
/** Milliseconds that have passed for the server beyond those of the machine. */
let later = 0;
const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + later };

beforeAll(async () => {
  admin = await startAdmin(undefined, { clock });
  const { json } = await admin.call('GET', '/api/last-night');
  beganHoursAgo = (Date.now() - Date.parse(json.began_at)) / 3_600_000;
});
beforeEach(() => emptyTables(admin.db, 'muster.connections', 'muster.lists', 'muster.runs', 'muster.holds', 'mirror.companies'));
afterAll(() => admin.stop());

/** One answer serves all callers for two seconds, so they pass first. */
async function night(query = '') {
  later += 2_000;
  return (await admin.call('GET', `/api/last-night${query}`)).json;
}
const unproved = async (query = '') => (await admin.call('GET', `/api/unproved${query}`)).json;
const inNight = () => beganHoursAgo / 2;
const before = () => beganHoursAgo + 0.5;
const whole = () => ({ lists: { employees: { provedHoursAgo: inNight() }, departments: { provedHoursAgo: inNight() } } });
const lacking = (provedHoursAgo: number | null) => ({
  lists: { employees: { provedHoursAgo }, departments: { provedHoursAgo: inNight() } },
});

test('a night is complete once each list that was due is proved', async () => {
  await addCompany(admin.db, whole());
  await addCompany(admin.db, { ...whole(), environment: 'production' });
  expect(await night()).toMatchObject({ under_way: false, lists: { due: 4, proved: 4 }, lacking: [] });
  expect(await night('?environment=production')).toMatchObject({ lists: { due: 2, proved: 2 } });
  expect(await unproved()).toEqual({ data: [], next_cursor: null });
});

test('lists that lack a proof are counted and listed by the state that says why', async () => {
  const waiting = await addCompany(admin.db, lacking(before()));
  const late = await addCompany(admin.db, lacking(30 + before()));
  const failed = await addCompany(admin.db, lacking(30 + before()));
  await addWalk(admin.db, failed, { code: 'service_refused', hours: 0.01 });
  const never = await addCompany(admin.db, lacking(null));
  const locked = await addCompany(admin.db, { ...lacking(before()), reauthorizationReason: 'token_refused' });
  expect(await night()).toMatchObject({
    lists: { due: 10, proved: 5 },
    lacking: [
      { state: 'reauthorization_required', lists: 1 },
      { state: 'failed', lists: 1 },
      { state: 'never', lists: 1 },
      { state: 'late', lists: 1 },
      { state: 'on_time', lists: 1 },
    ],
  });
  const { data } = await unproved();
  const states = new Map(data.map((list: { company_id: string; state: string }) => [list.company_id, list.state]));
  expect(states).toEqual(
    new Map([
      [waiting.companyId, 'on_time'],
      [late.companyId, 'late'],
      [failed.companyId, 'failed'],
      [never.companyId, 'never'],
      [locked.companyId, 'reauthorization_required'],
    ]),
  );
  expect((await unproved('?state=failed')).data).toEqual([
    expect.objectContaining({
      company_id: failed.companyId,
      resource: 'employees',
      reason: 'service_refused',
      since: expect.any(String),
    }),
  ]);
  expect((await unproved('?resource=departments')).data).toEqual([]);
  expect((await unproved(`?company_id=${late.companyId}`)).data).toHaveLength(1);
  const first = await unproved('?limit=3');
  const rest = await unproved(`?limit=3&cursor=${first.next_cursor}`);
  expect([...first.data, ...rest.data]).toEqual(data);
  expect(rest.next_cursor).toBeNull();
  await admin.db.prisma.company.create({ data: { ...late, name: 'Ærlig Såpe AS' } });
  for (const search of ['erlig', 'sape as', 'SÅPE', late.companyId.slice(0, 13)].map(encodeURIComponent))
    expect((await unproved(`?company=${search}`)).data).toMatchObject([
      { company_id: late.companyId, company_name: 'Ærlig Såpe AS' },
    ]);
  for (const query of ['company=tre%20sm%C3%A5', 'company=sape&environment=production', 'company=sape&state=failed'])
    expect(await unproved(`?${query}`)).toEqual({ data: [], next_cursor: null });
  for (const cursor of ['!!', Buffer.from(`test/${'f'.repeat(36)}/employees`).toString('base64url')])
    expect((await admin.call('GET', `/api/unproved?cursor=${cursor}`)).status).toBe(400);
});

test('companies that are paused or new, and lists that a company does not have, are not due', async () => {
  await addCompany(admin.db, { ...lacking(before()), paused: true });
  const added = await addCompany(admin.db, lacking(null));
  await admin.db.prisma.connection.updateMany({ where: added, data: { createdAt: hoursAgo(inNight()) } });
  await addCompany(admin.db, {
    lists: { employees: { provedHoursAgo: null, unavailableHours: 1 }, departments: { provedHoursAgo: inNight() } },
  });
  expect(await night()).toMatchObject({ lists: { due: 1, proved: 1 }, lacking: [] });
  expect((await unproved()).data).toEqual([]);
});

test('a list without a row is due, and was never proved', async () => {
  const company = await addCompany(admin.db, whole());
  await admin.db.prisma.list.deleteMany({ where: { ...company, resource: 'employees' } });
  expect(await night()).toMatchObject({ lists: { due: 2, proved: 1 }, lacking: [{ state: 'never', lists: 1 }] });
  expect((await unproved()).data).toMatchObject([{ resource: 'employees', state: 'never', since: null, last_verified_at: null }]);
});

test('a run that was requested before the last turn of the night stands for it, unless it walks lists by their own schedules', async () => {
  const company = await addCompany(admin.db, lacking(before()));
  const data = { ...company, mode: 'full', createdAt: hoursAgo(before()) };
  const isUnderWayDuring = async (run: { readonly trigger: string; readonly createdAt?: Date }) => {
    const { id } = await admin.db.prisma.run.create({ data: { ...data, ...run } });
    const { under_way } = await night();
    await admin.db.prisma.run.delete({ where: { id } });
    return under_way;
  };
  expect(await isUnderWayDuring({ trigger: 'resync' })).toBe(true);
  const { lastTurn } = nightsAround({ cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 }, Date.now());
  expect(await isUnderWayDuring({ trigger: 'manual', createdAt: new Date(lastTurn - 1) })).toBe(true);
  expect(await isUnderWayDuring({ trigger: 'resync', createdAt: new Date(lastTurn) })).toBe(false);
  expect(await isUnderWayDuring({ trigger: 'scheduled' })).toBe(false);
  expect(await isUnderWayDuring({ trigger: 'verify' })).toBe(false);
});

test('it is under way while a nightly run has not ended, or a sync is due before the next night', async () => {
  const company = await addCompany(admin.db, lacking(before()));
  const isUnderWay = async () => (await night()).under_way;
  expect(await isUnderWay()).toBe(false);
  const data = { ...company, trigger: 'nightly', mode: 'full', createdAt: hoursAgo(inNight()) };
  const { id } = await admin.db.prisma.run.create({ data });
  expect(await isUnderWay()).toBe(true);
  await admin.db.prisma.connection.updateMany({ data: { paused: true } });
  expect(await isUnderWay()).toBe(false);
  await admin.db.prisma.connection.updateMany({ data: { paused: false } });
  await admin.db.prisma.run.update({ where: { id }, data: { status: 'failed', finishedAt: new Date() } });
  const { began, next } = nightsAround({ cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 }, Date.now());
  const { began_at, next_at } = await night();
  expect([began_at, next_at]).toEqual([new Date(began).toISOString(), new Date(next).toISOString()]);
  await admin.db.prisma.connection.updateMany({ data: { nextSyncAt: new Date(Date.parse(next_at) - 1_000) } });
  expect(await isUnderWay()).toBe(true);
  await admin.db.prisma.connection.updateMany({ data: { nextSyncAt: new Date(next_at) } });
  expect(await isUnderWay()).toBe(false);
});
