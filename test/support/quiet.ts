import { QuietHours, readQuietWindows } from '../../src/core/quiet-hours.js';

/** An installation without quiet hours. */
export const notQuiet = new QuietHours({ windows: [], timezone: 'UTC' });

/** A window of UTC that begins with a whole minute at or before `at`, whatever the hour of the day. Times are milliseconds since 1970. */
export function windowAt(at: number, lengthMs: number) {
  const opens = Math.floor(at / 60_000) * 60_000;
  const ends = opens + lengthMs;
  const text = `${timeOf(opens)}-${timeOf(ends)}`;
  const read = readQuietWindows(text);
  if ('problems' in read) throw new Error(read.problems.join('; '));
  return { text, windows: read.windows, opens, ends };
}

const timeOf = (at: number) => new Date(at).toISOString().slice(11, 16);
