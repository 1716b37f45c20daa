import { type Catalogue, scheduledLists } from '../catalogue/endpoint.js';
import { gapsOf } from '../core/cron.js';
import type { StaleAfterHours } from '../core/stale-after.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** A list that comes often has this long for a walk, and for waiting until another run of its company has ended. */
const LEAST_GRACE = 15 * MINUTE;
/** The part of a gap that a walk may take: two hours of a day. */
const GRACE = 1 / 12;

/**
 * When lists are late: those of the night by `staleAfterHours`, and a list with a schedule of its own once its proof is older than the longest time
 * between two of its turns and a twelfth of that, at least 15 minutes.
 */
export function latenessOf(
  {
    staleAfterHours,
    schedule: { timezone },
  }: { readonly staleAfterHours: number; readonly schedule: { readonly timezone: string } },
  catalogue: Pick<Catalogue, 'endpoints'>,
): StaleAfterHours {
  const lists = scheduledLists(catalogue);
  if (lists.length === 0) return staleAfterHours;
  return {
    nightly: staleAfterHours,
    own: Object.fromEntries(lists.map(({ resource, schedule }) => [resource, hoursOfGap(longestGap(schedule, timezone))])),
  };
}

/** Milliseconds. Whatever else keeps a list from its turn is added here. */
function longestGap(cron: string, timezone: string): number {
  return gapsOf(cron, timezone).longest;
}

/** In whole minutes. */
function hoursOfGap(gap: number): number {
  return Math.ceil((gap + Math.max(gap * GRACE, LEAST_GRACE)) / MINUTE) * (MINUTE / HOUR);
}
