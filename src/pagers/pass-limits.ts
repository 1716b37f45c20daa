import { MusterError } from '../core/errors.js';

/** Requests of a pass over a list that does not tell its total. Too low cuts off a giant list, too high only costs time. */
export const MAX_REQUESTS_WITHOUT_TOTAL = 100_000;

/** Pages in a row that bring no new record, of a list whose pages name each other: a filter may leave many of them empty. */
export const MAX_BARREN_PAGES = 1_000;

/** Most pages in a row without a new record in lists that are asked for by position: their pages are empty only at the end, and repeat where many records join before them. */
export const MAX_BARREN_POSITIONS = 50;

/**
 * Requests of a pass over a list of `total` records, when each page brings `step` new ones: four times what a quiet list
 * needs, and some for short lists. It is fixed at the first page: a limit that grew with the list would be none.
 */
export function maxRequests(total: number | undefined, step: number): number {
  return total === undefined ? MAX_REQUESTS_WITHOUT_TOTAL : 100 + 4 * Math.ceil(total / Math.max(1, step));
}

export function passLimitExceeded(resource: string, requests: number, what: string): MusterError {
  return new MusterError(
    'walk_limit_exceeded',
    `The list ${resource} did not end after ${requests} requests: ${what}. The walk starts again with the next run; ` +
      'if this repeats, check the pager of this list in the catalogue.',
    { details: { resource, requests } },
  );
}
