import type { Clock } from '../core/clock.js';

/** How long processes with the former catalogue may still run after one with the next has started. */
const EXCHANGE_MS = 3_600_000;
const EVERY_MS = 300_000;

/**
 * Limits work by which a process makes the plans in the database follow its catalogue and schedule: the first call does it, and for an hour one call in five
 * minutes does it again. While processes are exchanged one by one, the former ones still write plans by the former catalogue. Only a process that has
 * started lately repeats it: otherwise the former and the next would undo each other's plans. Work that fails is repeated by the next call.
 */
export function whileProcessesAreExchanged(clock: Pick<Clock, 'monotonic'>, follow: () => Promise<void>): () => Promise<void> {
  let next = -Infinity;
  let until = Infinity;
  return async () => {
    const now = clock.monotonic();
    if (now < next || now > until) return;
    await follow();
    if (until === Infinity) until = now + EXCHANGE_MS;
    next = now + EVERY_MS;
  };
}
