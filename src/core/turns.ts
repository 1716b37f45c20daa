import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Work that may be long is cut into portions, and between two of them others have a turn: sockets, timers, the claims of other runs. How much a portion
 * holds is counted and not timed, so that it is the same on every machine; docs/decisions/0044-no-answer-stops-the-others.md says what bounds the rest.
 */

/** Bytes that are read in one portion. */
export const BYTES_A_TURN = 1024 * 1024;
/** Records, keys or values that are handled in one portion. */
export const ITEMS_A_TURN = 2_000;

/** Ends a portion of work that is no generator. */
export { nextTurn };

/** Cuts items into portions by their number, and by their sizes in bytes where these are to bound one, too. No items are one portion. */
export function* portionsOf<T>(items: readonly T[], sizeOf?: (item: T) => number): Generator<readonly T[], void> {
  let first = 0;
  do {
    const end = endOfPortion(items, first, sizeOf);
    yield items.slice(first, end);
    first = end;
  } while (first < items.length);
}

function endOfPortion<T>(items: readonly T[], first: number, sizeOf?: (item: T) => number): number {
  const last = Math.min(first + ITEMS_A_TURN, items.length);
  if (!sizeOf) return last;
  let end = first;
  for (let size = 0; end < last && size < BYTES_A_TURN; end += 1) size += sizeOf(items[end]!);
  return end;
}

/** Handles each item, in portions. */
export function* eachInPortions<T>(
  items: readonly T[],
  handle: (item: T) => void,
  sizeOf?: (item: T) => number,
): Generator<void, void> {
  let isFirst = true;
  for (const portion of portionsOf(items, sizeOf)) {
    if (!isFirst) yield;
    isFirst = false;
    portion.forEach(handle);
  }
}

/** Does the work of a generator that yields where a portion ends. */
export async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    await nextTurn();
  }
}

/** Does such work in one turn, where its caller knows it to be short. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
