import type { Clock } from './clock.js';

/** The most of a process's time that work takes which it does again and again. */
const DUTY_CYCLE = 1 / 20;

/**
 * Limits work that is called for at intervals, and takes long where there is much data. After each time the work rests, so that it takes at most `share` of
 * the time; a call during the rest does nothing. Work that fails does not rest.
 */
export function limitDutyCycle(
  clock: Pick<Clock, 'monotonic'>,
  work: () => Promise<void>,
  share = DUTY_CYCLE,
): () => Promise<void> {
  let restsUntil = -Infinity;
  return async () => {
    const startedAt = clock.monotonic();
    if (startedAt < restsUntil) return;
    await work();
    restsUntil = startedAt + (clock.monotonic() - startedAt) / share;
  };
}
