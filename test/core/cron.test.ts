import { CronExpressionParser } from 'cron-parser';
import { expect, test } from 'vitest';
import { gapsOf, isCron } from '../../src/core/cron.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test.each<[string, number, number]>([
  ['*/10 * * * *', 10 * MINUTE, 10 * MINUTE],
  ['0 */4 * * *', 4 * HOUR, 4 * HOUR],
  ['0 2 * * *', DAY, DAY],
  ['0 3 * * 0', 7 * DAY, 7 * DAY],
  ['0 2 * * 1-5', DAY, 3 * DAY],
  ['*/10 8-18 * * 1-5', 10 * MINUTE, 2 * DAY + 13 * HOUR + 10 * MINUTE],
  ['15,20 6,22 * * *', 5 * MINUTE, 15 * HOUR + 55 * MINUTE],
  ['0 0 1 * *', 28 * DAY, 31 * DAY],
  ['0 0 31 * *', 31 * DAY, 61 * DAY],
  ['0 0 29 2 *', 4 * 365 * DAY + DAY, 4 * 365 * DAY + DAY],
  ['0 12 * 1-11 *', DAY, 32 * DAY],
  ['30 * * * * *', MINUTE, MINUTE],
])('%s: between two occurrences at least %i and at most %i milliseconds', (cron, shortest, longest) => {
  expect(gapsOf(cron, 'UTC')).toEqual({ shortest, longest });
});

/** Three days around a change of the clocks. */
const CHANGES: readonly [string, string][] = [
  ['Europe/Copenhagen', '2026-03-28'],
  ['Europe/Copenhagen', '2026-10-24'],
  ['Africa/Casablanca', '2026-02-14'],
  ['Africa/Casablanca', '2026-03-21'],
];

test.each(['*/20 * * * *', '0 * * * *', '0 */4 * * *', '30 2 * * *', '5 1-3 * * 0', '0 2 * * 1-5'])(
  '%s: no gap is longer around a change of the clocks',
  (cron) => {
    for (const [tz, day] of CHANGES) {
      const { longest } = gapsOf(cron, tz);
      const occurrences = CronExpressionParser.parse(cron, { tz, currentDate: new Date(day) });
      const times = [occurrences.next().getTime()];
      do times.push(occurrences.next().getTime());
      while (times.at(-1)! < Date.parse(day) + 3 * DAY);
      for (const [i, time] of times.slice(1).entries()) expect(time - times[i]!).toBeLessThanOrEqual(longest);
    }
  },
);

test('a change of the clocks counts once, and where the hours are named', () => {
  expect(gapsOf('0 */4 * * *', 'Europe/Copenhagen').longest).toBe(5 * HOUR);
  expect(gapsOf('0 2 * * *', 'Australia/Lord_Howe').longest).toBe(24.5 * HOUR);
  expect(gapsOf('*/10 * * * *', 'Europe/Copenhagen').longest).toBe(10 * MINUTE);
  expect(gapsOf('0 2 * * *', 'Asia/Tokyo').longest).toBe(DAY);
});

test.each(['', '* * * *', '61 * * * *', '0 0 31 2 *', 'H * * * *', '@daily'])('%j is no schedule', (text) => {
  expect(isCron(text)).toBe(false);
});
