import { expect, test } from 'vitest';
import { boundsOfDay, isDay } from '../../src/core/days.js';

test.each([
  ['2026-11-24', 'UTC', '2026-11-24T00:00:00.000Z', '2026-11-25T00:00:00.000Z'],
  ['2026-11-24', 'Europe/Oslo', '2026-11-23T23:00:00.000Z', '2026-11-24T23:00:00.000Z'],
  ['2026-11-24', 'Pacific/Kiritimati', '2026-11-23T10:00:00.000Z', '2026-11-24T10:00:00.000Z'],
  ['2026-11-24', 'Pacific/Niue', '2026-11-24T11:00:00.000Z', '2026-11-25T11:00:00.000Z'],
  // Days of 25 and of 23 hours.
  ['2026-10-25', 'Europe/Oslo', '2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z'],
  ['2026-03-29', 'Europe/Oslo', '2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'],
  // The clocks go from 23:59:59 to 01:00:00.
  ['2026-04-24', 'Africa/Cairo', '2026-04-23T22:00:00.000Z', '2026-04-24T21:00:00.000Z'],
  ['2026-12-31', 'UTC', '2026-12-31T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
])('%s in %s', (day, zone, since, until) => {
  expect(boundsOfDay(day, zone)).toEqual({ since: new Date(since), until: new Date(until) });
});

test.each(['2026-02-30', '2026-13-01', '26-01-01', '2026-1-1', '', '0000-00-00', '1969-12-31', '2026-11-24T00:00:00Z'])(
  '%j is no day',
  (text) => expect(isDay(text)).toBe(false),
);
test('the 29th of February is one', () => expect([isDay('2028-02-29'), isDay('2026-02-29')]).toEqual([true, false]));
