import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { longestQuietMs, QuietHours, quietWindowsText, readQuietWindows } from '../../src/core/quiet-hours.js';

const MINUTE = 60_000;

function windowsOf(text: string) {
  const read = readQuietWindows(text);
  if ('problems' in read) throw new Error(read.problems.join('; '));
  return read.windows;
}

function endOf(text: string, timezone: string, at: string, own: string | null = null): string | undefined {
  const end = new QuietHours({ windows: windowsOf(text), timezone }).endOf(own, Date.parse(at));
  return end === undefined ? undefined : new Date(end).toISOString();
}

describe('reading', () => {
  test.each([
    ['07:00-09:00,12:00-13:00', '07:00-09:00,12:00-13:00', 2],
    [' 12:00-13:00 , 07:00-09:00 ', '07:00-09:00,12:00-13:00', 2],
    ['22:00-06:00', '22:00-06:00', 8],
    ['22:00-24:00', '22:00-24:00', 2],
    ['22:00-00:00', '22:00-24:00', 2],
    ['22:00-24:00,00:00-06:00', '22:00-06:00', 8],
    ['07:00-09:00,09:00-10:00', '07:00-10:00', 3],
    ['07:00-09:00,08:00-08:30,08:45-09:15', '07:00-09:15', 2.25],
    ['23:00-01:00,22:00-23:30,12:00-12:01', '12:00-12:01,22:00-01:00', 3],
    ['00:00-23:59', '00:00-23:59', 24 - 1 / 60],
    ['12:01-12:00', '12:01-12:00', 24 - 1 / 60],
  ])('%s', (text, written, longestHours) => {
    expect(quietWindowsText(windowsOf(text))).toBe(written);
    expect(longestQuietMs(windowsOf(text))).toBeCloseTo(longestHours * 60 * MINUTE);
    // A text that is written is read again as the same.
    expect(windowsOf(written)).toEqual(windowsOf(text));
  });

  test.each([
    ['', ['window 1 must be two times']],
    ['7:00-9:00', ['window 1 must be two times']],
    ['07:00', ['window 1 must be two times']],
    ['07:00-25:00', ['window 1 must be two times']],
    ['24:00-01:00', ['window 1 must be two times']],
    ['07:00-09:60', ['window 1 must be two times']],
    ['07:00-07:00', ['window 1 begins and ends at the same time']],
    ['00:00-00:00', ['window 1 begins and ends at the same time']],
    ['00:00-24:00', ['leave no time']],
    ['00:00-12:00,12:00-24:00', ['leave no time']],
    ['20:00-10:00,09:00-21:00', ['leave no time']],
    ['07:00-09:00,x,08:00-08:00', ['window 2 must be two times', 'window 3 begins and ends']],
    ['00:00-24:00,x', ['window 2 must be', 'leave no time']],
    [Array.from({ length: 49 }, () => '07:00-09:00').join(','), ['at most 48 windows']],
  ])('%j is refused', (text, problems) => {
    const read = readQuietWindows(text);
    expect('problems' in read && read.problems).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });

  test('no windows are none', () => {
    expect(quietWindowsText([])).toBe('none');
    expect(longestQuietMs([])).toBe(0);
  });
});

describe('the end', () => {
  test.each([
    // A window holds its first moment, and not its last.
    ['07:00-09:00', 'UTC', '2026-11-28T06:59:59.999Z', undefined],
    ['07:00-09:00', 'UTC', '2026-11-28T07:00:00.000Z', '2026-11-28T09:00:00.000Z'],
    ['07:00-09:00', 'UTC', '2026-11-28T08:59:59.999Z', '2026-11-28T09:00:00.000Z'],
    ['07:00-09:00', 'UTC', '2026-11-28T09:00:00.000Z', undefined],
    ['22:00-06:00', 'UTC', '2026-11-28T23:00:00.000Z', '2026-11-29T06:00:00.000Z'],
    ['22:00-06:00', 'UTC', '2026-11-28T03:00:00.000Z', '2026-11-28T06:00:00.000Z'],
    ['07:00-09:00', 'Asia/Kolkata', '2026-11-28T02:00:00.000Z', '2026-11-28T03:30:00.000Z'],
    // The clocks skip 02:00 to 03:00: the window does not come.
    ['02:00-03:00', 'Europe/Oslo', '2026-03-29T00:59:59.999Z', undefined],
    ['02:00-03:00', 'Europe/Oslo', '2026-03-29T01:00:00.000Z', undefined],
    ['01:30-02:30', 'Europe/Oslo', '2026-03-29T00:45:00.000Z', '2026-03-29T01:00:00.000Z'],
    ['01:30-03:30', 'Europe/Oslo', '2026-03-29T00:45:00.000Z', '2026-03-29T01:30:00.000Z'],
    // The clocks repeat 02:00 to 03:00: the window comes twice.
    ['02:00-03:00', 'Europe/Oslo', '2026-10-25T00:10:00.000Z', '2026-10-25T02:00:00.000Z'],
    ['02:00-02:30', 'Europe/Oslo', '2026-10-25T00:10:00.000Z', '2026-10-25T00:30:00.000Z'],
    ['02:00-02:30', 'Europe/Oslo', '2026-10-25T00:40:00.000Z', undefined],
    ['02:00-02:30', 'Europe/Oslo', '2026-10-25T01:10:00.000Z', '2026-10-25T01:30:00.000Z'],
    // Half an hour, on an island.
    ['01:00-02:15', 'Australia/Lord_Howe', '2026-04-04T14:30:00.000Z', '2026-04-04T15:45:00.000Z'],
  ])('of %s in %s at %s', (text, zone, at, end) => {
    expect(endOf(text, zone, at)).toBe(end);
  });

  test.each([
    [null, '2026-11-28T09:00:00.000Z'],
    ['none', undefined],
    ['08:00-10:00', '2026-11-28T10:00:00.000Z'],
    ['10:00-11:00', undefined],
    ['not a window', '2026-11-28T09:00:00.000Z'],
  ])('with %j of its own', (own, end) => {
    expect(endOf('07:00-09:00', 'UTC', '2026-11-28T08:00:00.000Z', own)).toBe(end);
  });

  test('is the first minute that no window holds, by the clock on the wall', () => {
    const time = fc.integer({ min: 0, max: 1_439 });
    const text = (minutes: number) =>
      `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
    const zone = fc.constantFrom('UTC', 'Europe/Oslo', 'America/St_Johns', 'Australia/Lord_Howe', 'Africa/Cairo', 'Pacific/Apia');
    // Days before changes of the clocks in those zones, and another.
    const day = fc.constantFrom('2026-03-28', '2026-03-08', '2026-10-24', '2026-10-31', '2026-04-04', '2026-04-23', '2026-06-01');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(time, time), { minLength: 1, maxLength: 4 }),
        zone,
        day,
        time,
        (pairs, timezone, date, minute) => {
          const read = readQuietWindows(pairs.map(([from, to]) => `${text(from)}-${text(to)}`).join(','));
          if ('problems' in read) return;
          const clock = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, hour: '2-digit', minute: '2-digit' });
          const isQuiet = (at: number) => {
            const [hours, minutes] = clock.format(at).split(':').map(Number);
            const now = hours! * 60 + minutes!;
            return pairs.some(([from, to]) => (from < to ? from <= now && now < to : now >= from || now < to));
          };
          const at = Date.parse(`${date}T00:00Z`) + minute * MINUTE;
          let end: number | undefined;
          if (isQuiet(at)) for (end = at; isQuiet(end); end += MINUTE);
          expect(new QuietHours({ windows: read.windows, timezone }).endOf(null, at)).toBe(end);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('an age limit without the quiet hours', () => {
  const back = (text: string, at: string, hours: number, own: string | null = null) => {
    const quiet = new QuietHours({ windows: windowsOf(text), timezone: 'UTC' });
    return new Date(quiet.countBack(own, Date.parse(at), hours * 60 * MINUTE)).toISOString();
  };

  test.each([
    ['22:00-06:00', '2026-11-28T05:00:00.000Z', 6, '2026-11-27T16:00:00.000Z'],
    ['22:00-06:00', '2026-11-28T07:00:00.000Z', 6, '2026-11-27T17:00:00.000Z'],
    ['22:00-06:00', '2026-11-28T12:00:00.000Z', 6, '2026-11-28T06:00:00.000Z'],
    ['22:00-06:00', '2026-11-28T12:30:00.000Z', 6, '2026-11-28T06:30:00.000Z'],
    ['07:00-09:00,12:00-13:00', '2026-11-28T14:00:00.000Z', 6, '2026-11-28T05:00:00.000Z'],
    // Four hours of each day are left.
    ['06:00-20:00,22:00-04:00', '2026-11-28T05:00:00.000Z', 6, '2026-11-26T21:00:00.000Z'],
  ])('of %s, at %s by %i hours', (text, at, hours, since) => {
    expect(back(text, at, hours)).toBe(since);
  });

  test('is that of a company with hours of its own, or with none', () => {
    expect(back('22:00-06:00', '2026-11-28T05:00:00.000Z', 6, 'none')).toBe('2026-11-27T23:00:00.000Z');
    expect(back('22:00-06:00', '2026-11-28T05:00:00.000Z', 6, '04:00-05:00')).toBe('2026-11-27T22:00:00.000Z');
  });
});
