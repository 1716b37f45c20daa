import { type Catalogue, scheduledLists } from '../catalogue/endpoint.js';
import { gapsOf } from '../core/cron.js';
import type { QuietHours } from '../core/quiet-hours.js';
import type { StaleAfterHours } from '../core/stale-after.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** A list that comes often has this long for a walk, and for waiting until another run of its company has ended. */
const LEAST_GRACE = 15 * MINUTE;
/** The part of a gap that a walk may take: two hours of a day. */
const GRACE = 1 / 12;

/**
 * When lists are late: those of the night by `staleAfterHours`, and a list with a schedule of its own once its proof is older than the longest time
 * between two of its turns and a twelfth of that, at least 15 minutes. A turn may have to wait for the end of the longest quiet hours.
 */
export function latenessOf(
  {
    staleAfterHours,
    schedule: { timezone },
    quiet,
  }: {
    readonly staleAfterHours: number;
    readonly schedule: { readonly timezone: string };
    readonly quiet: Pick<QuietHours, 'longestMs'>;
  },
  catalogue: Pick<Catalogue, 'endpoints'>,
): StaleAfterHours {
  const lists = scheduledLists(catalogue);
  if (lists.length === 0) return staleAfterHours;
  return {
    nightly: staleAfterHours,
    own: Object.fromEntries(
      lists.map(({ resource, schedule }) => [resource, hoursOf(gapsOf(schedule, timezone).longest, quiet.longestMs)]),
    ),
  };
}

/** In whole minutes; `gap` and `wait` are milliseconds. */
function hoursOf(gap: number, wait: number): number {
  return Math.ceil((gap + Math.max(gap * GRACE, LEAST_GRACE) + wait) / MINUTE) * (MINUTE / HOUR);
}
