// Times for people: relative to now, and exact in the time zone of the schedule.

const MINUTE_MS = 60_000;
const HALF_YEAR_MS = 183 * 86_400_000;

/** Units from the smallest, each up to a number above which the next one says more. */
const UNITS = [
  ['second', 1, 60],
  ['minute', 60, 60],
  ['hour', 3_600, 48],
  ['day', 86_400, 60],
  ['month', 2_629_746, 24],
  ['year', 31_556_952, Number.POSITIVE_INFINITY],
] as const;

// Never "yesterday": 30 hours ago may be the day before it.
const RELATIVE = new Intl.RelativeTimeFormat('en-GB', { numeric: 'always' });

/** "2 hours ago", "in 3 days", "now" within ten seconds. `ms` is negative for the past. */
export function relativeText(ms: number): string {
  const { count, unit } = rounded(ms);
  return unit === 'second' && count < 10 ? 'now' : RELATIVE.format(Math.sign(ms) * count, unit);
}

/** "4 days", "1 hour". */
export function lastingText(ms: number): string {
  const { count, unit } = rounded(Math.max(0, ms));
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

function rounded(ms: number) {
  const seconds = Math.abs(ms) / 1_000;
  for (const [unit, length, most] of UNITS) {
    const count = Math.round(seconds / length);
    if (count < most) return { count, unit };
  }
  throw new Error(`This is no time: ${ms}`);
}

/** "26 Nov, 02:14", with the year if it is half a year away, and with the zone in an hour that the clocks repeat. */
export function exactText(at: number, zone: string, now: number): string {
  const { day, dayOfYear, minute, minuteAndZone } = formatsOf(zone);
  const date = Math.abs(at - now) > HALF_YEAR_MS ? dayOfYear : day;
  return `${date.format(at)}, ${(isRepeated(at, minute) ? minuteAndZone : minute).format(at)}`;
}

/** "Thu, 26 Nov 2026, 02:14:05 CET" */
export function wholeText(at: number, zone: string): string {
  const { weekday, second } = formatsOf(zone);
  return `${weekday.format(at)}, ${second.format(at)}`;
}

/** Whether the clocks show this minute twice in this night. They are turned back by half an hour or an hour, at night. */
function isRepeated(at: number, minute: Intl.DateTimeFormat): boolean {
  const shown = minute.format(at);
  return shown < '05' && [-60, -30, 30, 60].some((minutes) => minute.format(at + minutes * MINUTE_MS) === shown);
}

/** Making a format takes far longer than using it. A process has one zone. */
const formats = new Map<string, ReturnType<typeof makeFormats>>();

function formatsOf(timeZone: string) {
  const known = formats.get(timeZone) ?? makeFormats(timeZone);
  formats.set(timeZone, known);
  return known;
}

function makeFormats(timeZone: string) {
  const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat('en-GB', { timeZone, ...options });
  const date = { day: 'numeric', month: 'short' } as const;
  const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  return {
    day: format(date),
    dayOfYear: format({ ...date, year: 'numeric' }),
    weekday: format({ ...date, year: 'numeric', weekday: 'short' }),
    minute: format(time),
    minuteAndZone: format({ ...time, timeZoneName: 'short' }),
    second: format({ ...time, second: '2-digit', timeZoneName: 'short' }),
  };
}
