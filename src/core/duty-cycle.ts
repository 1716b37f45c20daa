import type { Clock } from './clock.js';

/** So many times as long as the work took: it then takes a twentieth of the time at most. */
const REST = 20;

/** Work that is to be done over and over, and takes long where there is much. Behind each time it rests, and a call meanwhile does nothing. */
export function limitDutyCycle(clock: Pick<Clock, 'monotonic'>, work: () => Promise<void>): () => Promise<void> {
  let restsUntil = -Infinity;
  return async () => {
    const startedAt = clock.monotonic();
    if (startedAt < restsUntil) return;
    await work();
    restsUntil = clock.monotonic() + REST * (clock.monotonic() - startedAt);
  };
}
