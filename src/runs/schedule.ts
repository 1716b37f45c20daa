import { createHash } from 'node:crypto';
import { CronExpressionParser } from 'cron-parser';
import { type CompanyKey, describeCompany } from '../core/company.js';
import { gapsOf } from '../core/cron.js';

/** When companies are synced: a cron expression in a time zone, and a window that starts then, over which companies are spread. */
export interface Schedule {
  readonly cron: string;
  readonly timezone: string;
  readonly spreadMinutes: number;
}

/**
 * When a list with a schedule of its own is walked: companies are spread over the window of the nights, or over the shortest time between two
 * occurrences if that is less, so that no company's turn comes after the next occurrence.
 */
export function scheduleOfList({ timezone, spreadMinutes }: Schedule, cron: string): Schedule {
  return { cron, timezone, spreadMinutes: Math.min(spreadMinutes, gapsOf(cron, timezone).shortest / 60_000) };
}

/** Longer than any change of the clocks. */
const CLOCK_CHANGE_MS = 3 * 3_600_000;

/**
 * Returns a function that gives the next turn of a company after `now` (milliseconds since 1970). It parses the schedule once for
 * all companies, since that is slow. A hash of the company's key gives its place in the window, so that it is the same every night and
 * companies do not all come due at once.
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
 * The beginnings of windows from `earliest` to the first one after `now`. Parsing starts well before: just after a change of the clocks, the
 * next occurrence would depend on the time at which parsing starts.
 */
function windowStarts({ cron, timezone }: Schedule, earliest: number, now: number): number[] {
  const occurrences = CronExpressionParser.parse(cron, { tz: timezone, currentDate: new Date(earliest - CLOCK_CHANGE_MS) });
  const starts: number[] = [];
  do starts.push(occurrences.next().getTime());
  while (starts.at(-1)! <= now);
  return starts;
}

/** When the newest night has begun, when its last company's turn comes, and when the next night begins, in milliseconds since 1970. */
export function nightsAround(schedule: Schedule, now: number): Readonly<Record<'began' | 'lastTurn' | 'next', number>> {
  const { cron, timezone: tz, spreadMinutes } = schedule;
  const next = windowStarts(schedule, now, now).find((start) => start > now)!;
  // The search starts one millisecond later, since the night may begin at `now`.
  const began = CronExpressionParser.parse(cron, { tz, currentDate: new Date(now + 1) })
    .prev()
    .getTime();
  return { began, lastTurn: began + spreadMinutes * 60_000, next };
}

/** A night is named after the day on which it begins in the schedule's time zone, such as 2026-11-24. */
export interface NightBeginning {
  readonly night: string;
  /** In milliseconds since 1970. */
  readonly beganAt: number;
}

/**
 * The nights that began after `after`, until `until`, oldest first. A night begins when the schedule starts for the first time on a day;
 * days without a start have no night.
 */
export function nightsBetween(schedule: Schedule, after: number, until: number): NightBeginning[] {
  const { timezone: tz } = schedule;
  // Swedish writes a date as ISO 8601 does.
  const dayOf = new Intl.DateTimeFormat('sv-SE', { timeZone: tz });
  const nights: NightBeginning[] = [];
  for (let from = after; ; ) {
    const beganAt = windowStarts(schedule, from, from).find((start) => start > from)!;
    if (beganAt > until) return nights;
    const night = dayOf.format(beganAt);
    if (night !== nights.at(-1)?.night) nights.push({ night, beganAt });
    const midnight = CronExpressionParser.parse('0 0 * * *', { tz, currentDate: new Date(beganAt) })
      .next()
      .getTime();
    from = midnight - 1;
  }
}

/** Between 0 and 1. */
function placeInWindow(company: CompanyKey): number {
  return createHash('sha256').update(describeCompany(company)).digest().readUInt32BE(0) / 2 ** 32;
}
