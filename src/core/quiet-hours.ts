import { IANAZone } from 'luxon';
import { clockChange } from './cron.js';
import { MusterError } from './errors.js';

/** A window of local time, in minutes since midnight: `from` is quiet, `to` is not. It does not pass midnight; 1440 is midnight at its end. */
export interface QuietWindow {
  readonly from: number;
  readonly to: number;
}

/** The quiet hours of a company: windows, in order and apart from each other. A window that passes midnight is two. None: it has no quiet hours. */
export type QuietWindows = readonly QuietWindow[];

/** The word of a company without quiet hours, whatever the installation has. */
export const NO_QUIET_HOURS = 'none';

const DAY_MINUTES = 1_440;
const MINUTE_MS = 60_000;
/** More windows than a day can use; a longer text was not meant as windows. */
const MOST_WINDOWS = 48;
const WINDOW = /^((?:[01]\d|2[0-3]):[0-5]\d)-((?:[01]\d|2[0-3]):[0-5]\d|24:00)$/;

/**
 * Reads `07:00-09:00,12:00-13:00`. Windows may pass midnight, touch and overlap. Returns what is wrong with the text instead, with every fault;
 * the problems name windows by number and quote nothing.
 */
export function readQuietWindows(text: string): { readonly windows: QuietWindows } | { readonly problems: readonly string[] } {
  const problems: string[] = [];
  const windows: QuietWindow[] = [];
  const entries = text.split(',').map((entry) => entry.trim());
  if (entries.length > MOST_WINDOWS) return { problems: [`must have at most ${MOST_WINDOWS} windows`] };
  for (const [index, entry] of entries.entries()) {
    const [, begin, end] = WINDOW.exec(entry) ?? [];
    if (begin === undefined || end === undefined) {
      problems.push(`window ${index + 1} must be two times of a day with a dash, HH:MM-HH:MM, from 00:00 to 24:00`);
      continue;
    }
    const [from, to] = [minutesOf(begin), minutesOf(end)];
    if (from === to) problems.push(`window ${index + 1} begins and ends at the same time`);
    else if (from < to) windows.push({ from, to });
    else windows.push({ from, to: DAY_MINUTES }, ...(to > 0 ? [{ from: 0, to }] : []));
  }
  const merged = mergedOf(windows);
  if (longestQuietMs(merged) >= DAY_MINUTES * MINUTE_MS)
    problems.push('the windows leave no time of the day in which anything is asked');
  return problems.length > 0 ? { problems } : { windows: merged };
}

/** The windows as people write them, in order, each once: those that touch are one, also across midnight. */
export function quietWindowsText(windows: QuietWindows): string {
  if (windows.length === 0) return NO_QUIET_HOURS;
  return spansOf(windows)
    .map(({ from, to }) => `${timeText(from)}-${timeText(to > DAY_MINUTES ? to - DAY_MINUTES : to)}`)
    .join(',');
}

/** The longest time without a break in which nothing is asked, in milliseconds, on a day without a change of the clocks. */
export function longestQuietMs(windows: QuietWindows): number {
  return Math.max(0, ...spansOf(windows).map(({ from, to }) => (to - from) * MINUTE_MS));
}

/** Nothing was asked of the service because of quiet hours that end at `end`, in milliseconds since 1970. */
export function inQuietHours(end: number): MusterError {
  return new MusterError(
    'quiet_hours',
    `Nothing is asked of the service in quiet hours: they end at ${new Date(end).toISOString()}.`,
  );
}

/** The quiet hours of an installation, and of those companies that have their own. */
export class QuietHours {
  readonly #installation: QuietWindows;
  readonly #zone: IANAZone;
  readonly #own = new Map<string, QuietWindows>();
  /** The offset of the present minute: it is needed for each request, and takes a tenth of the worker's time for one. */
  #present = { minute: Number.NaN, offset: 0 };

  /** `timezone`: an IANA name that was checked. */
  constructor({ windows, timezone }: { readonly windows: QuietWindows; readonly timezone: string }) {
    this.#installation = windows;
    this.#zone = IANAZone.create(timezone);
  }

  /**
   * The end of the quiet hours in which `at` lies; undefined if it lies in none. Both are milliseconds since 1970. `own`: the windows of the company
   * as they are stored, or `none`; null if it has those of the installation. A window is in local time: where the clocks skip it there is none, and
   * where they repeat it, it comes twice.
   */
  endOf(own: string | null, at: number): number | undefined {
    const windows = this.#windowsOf(own);
    if (windows.length === 0) return undefined;
    let end = at;
    for (;;) {
      const local = this.#msOfDay(end);
      const window = windows.find(({ from, to }) => local >= from * MINUTE_MS && local < to * MINUTE_MS);
      if (!window) return end === at ? undefined : end;
      end = this.#beforeChange(end, end + window.to * MINUTE_MS - local);
    }
  }

  /**
   * The moment before `at` since which `ms` have passed outside quiet hours: an age limit in which they do not count. All are milliseconds, and `own` is
   * as for `endOf`. A change of the clocks in between moves the moment by that hour at most.
   */
  countBack(own: string | null, at: number, ms: number): number {
    const windows = this.#windowsOf(own).toReversed();
    let [since, left] = [at, ms];
    for (let midnight = at - this.#msOfDay(at); windows.length > 0; midnight -= DAY_MINUTES * MINUTE_MS)
      for (const { from, to } of windows) {
        const [opens, ends] = [midnight + from * MINUTE_MS, midnight + to * MINUTE_MS];
        if (opens >= since) continue;
        if (since - ends >= left) return since - left;
        left -= Math.max(0, since - ends);
        since = opens;
      }
    return since - left;
  }

  /** The longest time without a break in which the installation asks nothing, in milliseconds, with the hour that a change of the clocks may add. */
  get longestMs(): number {
    return this.#installation.length === 0 ? 0 : longestQuietMs(this.#installation) + clockChange(this.#zone.name);
  }

  #windowsOf(own: string | null): QuietWindows {
    if (own === null) return this.#installation;
    if (own === NO_QUIET_HOURS) return [];
    let windows = this.#own.get(own);
    if (!windows) {
      const read = readQuietWindows(own);
      // Only a person who wrote into the table can have left such a text.
      windows = 'windows' in read ? read.windows : this.#installation;
      this.#own.set(own, windows);
    }
    return windows;
  }

  /** Milliseconds since midnight by the clock on the wall. */
  #msOfDay(at: number): number {
    const minute = Math.floor(at / MINUTE_MS);
    if (this.#present.minute !== minute) this.#present = { minute, offset: this.#zone.offset(at) };
    const local = at + this.#present.offset * MINUTE_MS;
    return ((local % 86_400_000) + 86_400_000) % 86_400_000;
  }

  /** `until`, or the moment before it in which the clocks change. They never change twice in a day. */
  #beforeChange(from: number, until: number): number {
    const offset = this.#zone.offset(from);
    if (this.#zone.offset(until) === offset) return until;
    let [before, after] = [from, until];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (this.#zone.offset(middle) === offset) before = middle;
      else after = middle;
    }
    return after;
  }
}

/** Windows in order, those that touch or overlap merged; one that ends at midnight stays apart from one that begins then. */
function mergedOf(windows: QuietWindows): QuietWindow[] {
  const merged: QuietWindow[] = [];
  for (const window of windows.toSorted((one, other) => one.from - other.from)) {
    const last = merged.at(-1);
    if (last && window.from <= last.to) merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, window.to) };
    else merged.push(window);
  }
  return merged;
}

/** Merged windows with those on both sides of midnight joined: then `to` is more than a day, unless they are the whole day. */
function spansOf(windows: QuietWindows): QuietWindow[] {
  const [first, last] = [windows[0], windows.at(-1)];
  if (!first || !last || first === last || first.from !== 0 || last.to !== DAY_MINUTES) return [...windows];
  return [...windows.slice(1, -1), { from: last.from, to: DAY_MINUTES + first.to }];
}

function minutesOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number);
  return hours! * 60 + minutes!;
}

function timeText(minutes: number): string {
  return `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
}
