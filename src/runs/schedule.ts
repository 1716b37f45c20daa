import { createHash } from 'node:crypto';
import { CronExpressionParser } from 'cron-parser';
import { type CompanyKey, describeCompany } from '../core/company.js';

/** When companies are synced: a cron expression in a time zone, and the window over which companies are spread. */
export interface Schedule {
  readonly cron: string;
  readonly timezone: string;
  readonly spreadMinutes: number;
}

/** More than clocks are ever put forward or back at once. */
const CLOCK_CHANGE_MS = 3 * 3_600_000;

/**
 * The next nightly sync of any company after `now`, in milliseconds since 1970; the schedule, which takes much longer to read than a company's place,
 * is read once. The place in the window comes from a hash of the company's key, so that it is the same every night and
 * companies do not come due all at once.
 */
export function nextSyncsAfter(schedule: Schedule, now: number): (company: CompanyKey) => Date {
  const window = schedule.spreadMinutes * 60_000;
  const starts = windowStarts(schedule, now - window, now);
  return (company) => {
    const delay = Math.floor(placeInWindow(company) * window);
    return new Date(starts.find((start) => start + delay > now)! + delay);
  };
}

/**
 * When the windows begin that can hold a sync after `now`: from `earliest` to the first one after `now`. Read from well
 * before: where the clocks have just changed, the next occurrence would depend on the time from which it is asked for.
 */
function windowStarts({ cron, timezone }: Schedule, earliest: number, now: number): number[] {
  const occurrences = CronExpressionParser.parse(cron, { tz: timezone, currentDate: new Date(earliest - CLOCK_CHANGE_MS) });
  const starts: number[] = [];
  do starts.push(occurrences.next().getTime());
  while (starts.at(-1)! <= now);
  return starts;
}

/** Between 0 and 1. */
function placeInWindow(company: CompanyKey): number {
  return createHash('sha256').update(describeCompany(company)).digest().readUInt32BE(0) / 2 ** 32;
}
