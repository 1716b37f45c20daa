import { CronExpressionParser } from 'cron-parser';

/** Completes "must be". */
export const CRON_RULE =
  'five fields of cron: minute, hour, day of month, month, day of week (and a sixth in front for seconds, if wanted)';

/** Whether a text is such a schedule and comes at least once. The parser alone would fill in missing fields, and give H a different value each time. */
export function isCron(text: string): boolean {
  if (![5, 6].includes(text.split(/\s+/).length) || /(^|\s)H/.test(text)) return false;
  try {
    CronExpressionParser.parse(text, { tz: 'UTC' }).next();
    return true;
  } catch {
    return false;
  }
}

/** The times between two occurrences of a schedule, in milliseconds. */
export interface Gaps {
  /** The clock on the wall counts: a change of the clocks may make a single one shorter. */
  readonly shortest: number;
  /** With the hour that a change of the clocks may add. */
  readonly longest: number;
}

const SECOND = 1_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;
/** More than a year, so that each pause of a year is seen. */
const LONG_ENOUGH = 400 * DAY;
/** Fewer days than these may be parts of a pattern of several years: 29 February comes after eight years at the latest. */
const MANY_DAYS = 12;
const MOST_YEARS = 9;
/** The first day of a leap year: February has both lengths within the time that is looked at. */
const FIRST_DAY = Date.UTC(2024, 0, 1);

/**
 * The shortest and the longest time between two occurrences. Times within a day follow from the fields; days are asked of the parser, for little more
 * than a year, since it takes a tenth of a millisecond for each.
 */
export function gapsOf(cron: string, timezone: string): Gaps {
  const { second, minute, hour } = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields;
  const hours = numbers(hour);
  const times = hours.flatMap((h) =>
    numbers(minute).flatMap((m) => numbers(second).map((s) => ((h * 60 + m) * 60 + s) * SECOND)),
  );
  const night = times[0]! + DAY - times.at(-1)!;
  const gaps = [...gapsBetween(times), ...gapsBetween(daysOf(cron)).map((days) => days - DAY + night)];
  const longest = longestOf(gaps);
  // A schedule that comes in every hour has its occurrences in the hour that the clocks repeat, too.
  const repeats = hours.length === 24 && longest <= HOUR;
  return { shortest: shortestOf(gaps), longest: longest + (repeats ? 0 : clockChange(timezone)) };
}

/** Hours, minutes or seconds, in ascending order. */
function numbers({ values }: { readonly values: readonly (number | string)[] }): number[] {
  return values.map(Number).toSorted((a, b) => a - b);
}

/** The first days of the schedule, as midnights. */
function daysOf(cron: string): number[] {
  const [dayOfMonth, month, dayOfWeek] = cron.trim().split(/\s+/).slice(-3);
  if ([dayOfMonth, month, dayOfWeek].every((field) => field === '*' || field === '?')) return [FIRST_DAY, FIRST_DAY + DAY];
  const currentDate = new Date(FIRST_DAY - 1);
  const midnights = CronExpressionParser.parse(`0 0 ${dayOfMonth} ${month} ${dayOfWeek}`, { tz: 'UTC', currentDate });
  const days: number[] = [];
  do days.push(midnights.next().getTime());
  while (days.at(-1)! < FIRST_DAY + (days.length < MANY_DAYS ? MOST_YEARS * 366 * DAY : LONG_ENOUGH));
  return days;
}

const gapsBetween = (times: readonly number[]) => times.slice(1).map((time, i) => time - times[i]!);
const longestOf = (gaps: readonly number[]) => gaps.reduce((one, other) => Math.max(one, other));
const shortestOf = (gaps: readonly number[]) => gaps.reduce((one, other) => Math.min(one, other));

/** How far the clocks of a time zone are set back in a year, in milliseconds; 0 where they are not. */
export function clockChange(timezone: string): number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: timezone, timeZoneName: 'longOffset' });
  const offsets = Array.from({ length: 26 }, (_, n) => {
    const name = format.formatToParts(FIRST_DAY + n * 14 * DAY).find(({ type }) => type === 'timeZoneName')!.value;
    const [, sign, hours = '0', minutes = '0'] = /GMT(?:([+-])(\d+):(\d+))?/.exec(name)!;
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60 * SECOND;
  });
  return longestOf(offsets) - shortestOf(offsets);
}
