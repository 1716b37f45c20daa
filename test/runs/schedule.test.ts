import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { nextSyncsAfter, type Schedule } from '../../src/runs/schedule.js';

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
