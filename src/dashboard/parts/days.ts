// Days as the API calls nights by them: 2026-11-24, of whatever time zone. Reckoned in UTC, in which each has 24 hours.

const DAY_MS = 86_400_000;

const timeOf = (day: string) => Date.parse(`${day}T00:00:00Z`);
const dayAt = (time: number) => new Date(time).toISOString().slice(0, 10);

const SHORT = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'short' });
const WHOLE = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', weekday: 'long', day: 'numeric', month: 'long' });

/** So many days, of which `last` is the last one. */
export function daysUntil(last: string, count: number): string[] {
  const end = timeOf(last);
  return Array.from({ length: count }, (_, i) => dayAt(end - (count - 1 - i) * DAY_MS));
}

/** The later of the day that it is in UTC and the one that is given: some time zones are ahead. */
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
