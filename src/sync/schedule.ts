import { createHash } from 'node:crypto';
import { CronExpressionParser } from 'cron-parser';
import { type CompanyKey, describeCompany } from '../core/company.js';

/** When companies are synced: a cron expression in a time zone, and the window over which companies are spread. */
export interface Schedule {
  readonly cron: string;
  readonly timezone: string;
  readonly spreadMinutes: number;
}

/**
 * The next nightly sync of a company after `now` (milliseconds since the epoch). Its place in the window comes from a
 * hash of its key, so that it is the same every night and companies do not come due all at once.
 */
export function nextSyncAt(schedule: Schedule, company: CompanyKey, now: number): Date {
  const delay = Math.floor(placeInWindow(company) * schedule.spreadMinutes * 60_000);
  const occurrences = CronExpressionParser.parse(schedule.cron, { tz: schedule.timezone, currentDate: new Date(now - delay) });
  return new Date(occurrences.next().getTime() + delay);
}

/** Between 0 and 1. */
function placeInWindow(company: CompanyKey): number {
  return createHash('sha256').update(describeCompany(company)).digest().readUInt32BE(0) / 2 ** 32;
}
