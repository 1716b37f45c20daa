import { expect, test } from 'vitest';
import { QuietHours, type QuietWindows } from '../../src/core/quiet-hours.js';
import { latenessOf } from '../../src/runs/lateness.js';
import { catalogueOf } from './scheduled-fleet.js';

const settings = (timezone = 'UTC', windows: QuietWindows = []) => ({
  staleAfterHours: 26,
  schedule: { timezone },
  quiet: new QuietHours({ windows, timezone }),
});

test('without schedules of lists one number holds for all', () => {
  expect(latenessOf(settings(), catalogueOf({ employees: null, shifts: null }))).toBe(26);
});

test.each<[string, string, number]>([
  ['every ten minutes', '*/10 * * * *', 25 / 60],
  ['every four hours', '0 */4 * * *', 4 + 1 / 3],
  ['every night', '0 2 * * *', 26],
  ['on Sundays', '0 3 * * 0', 7 * 26],
  ['on weekdays', '0 3 * * 1-5', 3 * 26],
])('a list that comes %s is late after its longest gap and a twelfth of it, or 15 minutes', (_when, schedule, hours) => {
  expect(latenessOf(settings(), catalogueOf({ employees: null, shifts: schedule }))).toEqual({
    nightly: 26,
    own: { shifts: expect.closeTo(hours, 6) },
  });
});

test('the hour that the clocks are set back is part of the gap', () => {
  expect(latenessOf(settings('Europe/Copenhagen'), catalogueOf({ shifts: '0 2 * * *' }))).toMatchObject({
    own: { shifts: expect.closeTo((25 * 13) / 12, 1) },
  });
});

test('a turn in quiet hours waits for the end of the longest', () => {
  const windows = [
    { from: 7 * 60, to: 9 * 60 },
    { from: 12 * 60, to: 13 * 60 },
  ];
  expect(latenessOf(settings('UTC', windows), catalogueOf({ shifts: '0 * * * *' }))).toMatchObject({
    own: { shifts: expect.closeTo(1.25 + 2, 6) },
  });
});

test('the hour that the clocks are set back makes quiet hours longer', () => {
  const windows = [{ from: 60, to: 180 }];
  expect(latenessOf(settings('Europe/Copenhagen', windows), catalogueOf({ shifts: '0 * * * *' }))).toMatchObject({
    own: { shifts: expect.closeTo(1.25 + 3, 6) },
  });
});
