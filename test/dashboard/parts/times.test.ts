import { describe, expect, test } from 'vitest';
import { exactText, lastingText, relativeText, wholeText } from '../../../src/dashboard/parts/times.js';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-11-26T12:00:00Z');
const at = (time: string) => Date.parse(time);

describe('a relative time', () => {
  test.each([
    [-1, 'now'],
    [9_400, 'now'],
    [-12_000, '12 seconds ago'],
    [-59_600, '1 minute ago'],
    [-(HOUR - 1_000), '1 hour ago'],
    [-2 * HOUR, '2 hours ago'],
    [-35 * HOUR, '35 hours ago'],
    [-48 * HOUR, '2 days ago'],
    [30 * 24 * HOUR - 5_000, 'in 30 days'],
    [-59 * 24 * HOUR, '59 days ago'],
    [-70 * 24 * HOUR, '2 months ago'],
    [-800 * 24 * HOUR, '2 years ago'],
  ])('of %d ms is %s', (ms, text) => expect(relativeText(ms)).toBe(text));

  test.each([
    [0, '0 seconds'],
    [-5_000, '0 seconds'],
    [61_000, '1 minute'],
    [4 * 24 * HOUR, '4 days'],
    [24 * HOUR, '24 hours'],
  ])('lasts %d ms: %s', (ms, text) => expect(lastingText(ms)).toBe(text));
});

describe('an exact time', () => {
  test('is in the given zone', () => {
    expect(exactText(at('2026-11-26T01:14:05Z'), 'Europe/Oslo', NOW)).toBe('26 Nov, 02:14');
    expect(exactText(at('2026-11-26T01:14:05Z'), 'UTC', NOW)).toBe('26 Nov, 01:14');
    expect(exactText(at('2026-11-25T23:30:00Z'), 'Asia/Kolkata', NOW)).toBe('26 Nov, 05:00');
    expect(exactText(at('2026-11-26T03:00:00Z'), 'America/New_York', NOW)).toBe('25 Nov, 22:00');
  });

  test('has midnight as 00:00', () => {
    expect(exactText(at('2026-11-25T23:00:00Z'), 'Europe/Oslo', NOW)).toBe('26 Nov, 00:00');
  });

  test('follows the clocks of summer and winter', () => {
    expect(exactText(at('2026-10-24T00:14:00Z'), 'Europe/Oslo', NOW)).toBe('24 Oct, 02:14');
    expect(exactText(at('2026-10-26T01:14:00Z'), 'Europe/Oslo', NOW)).toBe('26 Oct, 02:14');
    expect(exactText(at('2026-03-29T00:59:00Z'), 'Europe/Oslo', at('2026-04-01T00:00:00Z'))).toBe('29 Mar, 01:59');
    expect(exactText(at('2026-03-29T01:00:00Z'), 'Europe/Oslo', at('2026-04-01T00:00:00Z'))).toBe('29 Mar, 03:00');
  });

  test('names the zone in the hour that the clocks repeat', () => {
    expect(exactText(at('2026-10-25T00:30:00Z'), 'Europe/Oslo', NOW)).toBe('25 Oct, 02:30 CEST');
    expect(exactText(at('2026-10-25T01:30:00Z'), 'Europe/Oslo', NOW)).toBe('25 Oct, 02:30 CET');
    expect(exactText(at('2026-10-25T02:30:00Z'), 'Europe/Oslo', NOW)).toBe('25 Oct, 03:30');
    expect(exactText(at('2026-04-04T15:15:00Z'), 'Australia/Lord_Howe', at('2026-04-05T00:00:00Z'))).toMatch(/^5 Apr, 01:45 \S/);
    expect(exactText(at('2026-04-04T14:45:00Z'), 'Australia/Lord_Howe', at('2026-04-05T00:00:00Z'))).toMatch(/^5 Apr, 01:45 \S/);
  });

  test('has the year if it is far away', () => {
    expect(exactText(at('2025-11-25T01:14:00Z'), 'UTC', NOW)).toBe('25 Nov 2025, 01:14');
    expect(exactText(at('2027-11-28T01:14:00Z'), 'UTC', NOW)).toBe('28 Nov 2027, 01:14');
    expect(exactText(at('2025-12-31T23:00:00Z'), 'UTC', at('2026-01-02T00:00:00Z'))).toBe('31 Dec, 23:00');
  });

  test('is whole in the tooltip', () => {
    expect(wholeText(at('2026-11-26T01:14:05Z'), 'Europe/Oslo')).toBe('Thu, 26 Nov 2026, 02:14:05 CET');
    expect(wholeText(at('2026-07-26T01:14:05Z'), 'UTC')).toMatch(/26 Jul 2026, 01:14:05 UTC$/);
  });
});
