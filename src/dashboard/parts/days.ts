// Days that name nights in the API, such as 2026-11-24. Calculations use UTC, in which each day has 24 hours, whatever the time zone.

const DAY_MS = 86_400_000;

const timeOf = (day: string) => Date.parse(`${day}T00:00:00Z`);
const dayAt = (time: number) => new Date(time).toISOString().slice(0, 10);

const SHORT = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'short' });
const WHOLE = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', weekday: 'long', day: 'numeric', month: 'long' });

/** `count` days that end with `last`. */
export function daysUntil(last: string, count: number): string[] {
  const end = timeOf(last);
  return Array.from({ length: count }, (_, i) => dayAt(end - (count - 1 - i) * DAY_MS));
}

/** Today in UTC, or `day` if that is later: some time zones are ahead. */
export function lastDay(now: number, day: string | undefined): string {
  const today = dayAt(now);
  return day !== undefined && day > today ? day : today;
}

/** 24 Nov */
export const shortDay = (day: string): string => SHORT.format(timeOf(day));

/** Tuesday 24 November */
export const wholeDay = (day: string): string => WHOLE.format(timeOf(day)).replace(',', '');

/** 0 for a Monday. */
export const weekdayOf = (day: string): number => (new Date(timeOf(day)).getUTCDay() + 6) % 7;
