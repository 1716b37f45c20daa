import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { nextSyncsAfter, nightsAround, nightsBetween, type Schedule } from '../../src/runs/schedule.js';

const COMPANY: CompanyKey = { environment: 'test', companyId: '5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10' };
const at = (text: string) => Date.parse(text);

function nights(schedule: Schedule, from: string, count: number, company = COMPANY): string[] {
  const times: string[] = [];
  for (let now = at(from); times.length < count; ) {
    const next = nextSyncsAfter(schedule, now)(company);
    times.push(next.toISOString());
    now = next.getTime();
  }
  return times;
}

test('by the clock of the time zone, in summer and in winter, once a night', () => {
  const schedule = { cron: '0 3 * * *', timezone: 'Europe/Copenhagen', spreadMinutes: 0 };
  expect(nights(schedule, '2026-03-27T12:00:00Z', 3)).toEqual([
    '2026-03-28T02:00:00.000Z',
    '2026-03-29T01:00:00.000Z',
    '2026-03-30T01:00:00.000Z',
  ]);
  expect(nights(schedule, '2026-10-24T12:00:00Z', 2)).toEqual(['2026-10-25T02:00:00.000Z', '2026-10-26T02:00:00.000Z']);
});

test('a time that a night does not have, or has twice, comes once', () => {
  const schedule = { cron: '30 2 * * *', timezone: 'Europe/Copenhagen', spreadMinutes: 0 };
  for (const from of ['2026-03-27T12:00:00Z', '2026-10-23T12:00:00Z']) {
    const days = nights(schedule, from, 5).map((time) => time.slice(0, 10));
    expect(new Set(days).size).toBe(5);
  }
});

test.each([
  ['2026-03-28', 0],
  ['2026-03-28', 120],
  ['2026-10-24', 0],
  ['2026-10-24', 120],
])('asked at any moment around a change of the clocks, the answer is one (%s, window of %i minutes)', (from, spreadMinutes) => {
  const schedule = { cron: '30 2 * * *', timezone: 'Europe/Copenhagen', spreadMinutes };
  const times = nights(schedule, `${from}T00:00:00Z`, 4).map(at);
  for (let now = at(`${from}T00:00:00Z`); now < times[2]!; now += 10 * 60_000)
    expect(nextSyncsAfter(schedule, now)(COMPANY).getTime()).toBe(times.find((time) => time > now));
});

test('a company has the same place in the window every night', () => {
  const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 };
  const times = nights(schedule, '2026-06-01T12:00:00Z', 10).map((time) => time.slice(11));
  expect(new Set(times).size).toBe(1);
});

test('asked at any moment of the day, the next time is later, within the window, and never skips a night', () => {
  const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 };
  const [place] = nights(schedule, '2026-06-01T12:00:00Z', 1).map((time) => at(time) - at('2026-06-02T02:00:00Z'));
  expect(place).toBeGreaterThanOrEqual(0);
  expect(place).toBeLessThan(120 * 60_000);
  for (let minute = 0; minute < 1_440; minute += 7) {
    const now = at('2026-06-02T00:00:00Z') + minute * 60_000;
    const wait = nextSyncsAfter(schedule, now)(COMPANY).getTime() - now;
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThanOrEqual(24 * 3_600_000);
  }
});

test('companies fill the window evenly, and each environment for itself', () => {
  const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 60 };
  const quarters = [0, 0, 0, 0];
  for (let n = 0; n < 2_000; n += 1) {
    const next = nextSyncsAfter(schedule, at('2026-06-01T12:00:00Z'))({ environment: 'test', companyId: randomUUID() });
    const minutes = next.getUTCMinutes();
    quarters[Math.floor(minutes / 15)]! += 1;
  }
  for (const share of quarters) expect(share).toBeGreaterThan(350);
  const [here, there] = (['test', 'production'] as const).map((environment) =>
    nextSyncsAfter(schedule, 0)({ ...COMPANY, environment }),
  );
  expect(here).not.toEqual(there);
});

test('the newest night is the one that has begun last, at the very moment, too', () => {
  const schedule = { cron: '0 2 * * *', timezone: 'Europe/Copenhagen', spreadMinutes: 120 };
  const around = (now: string) => {
    const { began, lastTurn, next } = nightsAround(schedule, at(now));
    expect(lastTurn - began).toBe(7_200_000);
    return [began, next].map((time) => new Date(time).toISOString());
  };
  const [monday, tuesday, wednesday] = ['2026-11-23T01:00:00.000Z', '2026-11-24T01:00:00.000Z', '2026-11-25T01:00:00.000Z'];
  expect(around('2026-11-24T00:59:59.999Z')).toEqual([monday, tuesday]);
  expect(around('2026-11-24T01:00:00Z')).toEqual([tuesday, wednesday]);
  expect(around('2026-11-24T12:00:00Z')).toEqual([tuesday, wednesday]);
});

test.each([
  ['0 3 * * *', 'Europe/Copenhagen', ['2026-10-24T01:00', '2026-10-25T02:00', '2026-10-26T02:00']],
  // The first time of each day by the clock of the time zone, which has 25 hours between two of them once.
  ['*/15 * * * *', 'Europe/Copenhagen', ['2026-10-23T22:00', '2026-10-24T22:00', '2026-10-25T23:00']],
  ['30 22 * * *', 'Pacific/Auckland', ['2026-10-24T09:30', '2026-10-25T09:30', '2026-10-26T09:30']],
])('nights are called by the day on which they begin: %s in %s', (cron, timezone, began) => {
  const schedule = { cron, timezone, spreadMinutes: 120 };
  const begun = nightsBetween(schedule, at(`${began[0]}:00Z`) - 1, at(`${began[2]}:00Z`));
  expect(begun.map(({ night, beganAt }) => [night, new Date(beganAt).toISOString().slice(0, 16)])).toEqual([
    ['2026-10-24', began[0]],
    ['2026-10-25', began[1]],
    ['2026-10-26', began[2]],
  ]);
});

test('a schedule of some days has nights on these alone', () => {
  const schedule = { cron: '0 2 * * MON', timezone: 'UTC', spreadMinutes: 120 };
  const begun = nightsBetween(schedule, at('2026-11-02T02:00:00Z'), at('2026-11-24T00:00:00Z'));
  expect(begun.map(({ night }) => night)).toEqual(['2026-11-09', '2026-11-16', '2026-11-23']);
});

test('nights of ninety days of a schedule that starts every minute, also where a midnight is missing', () => {
  // In Beirut the clocks go from 23:59 to 01:00.
  const schedule = { cron: '* * * * *', timezone: 'Asia/Beirut', spreadMinutes: 0 };
  const begun = nightsBetween(schedule, at('2026-02-01T00:00:00Z'), at('2026-05-02T00:00:00Z'));
  expect(new Set(begun.map(({ night }) => night)).size).toBe(begun.length);
  expect(begun.length).toBe(91);
  expect(begun.find(({ night }) => night === '2026-03-29')!.beganAt).toBe(at('2026-03-28T22:00:00Z'));
});
