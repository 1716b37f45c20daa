import type { Clock } from '../core/clock.js';
import type { World } from './world.js';

const TICK_MS = 1000;

/** Lets records change, join and leave every second, as a living system does, until the signal aborts. */
export async function keepAlive(world: World, share: number, clock: Clock, signal: AbortSignal): Promise<void> {
  let due = 0;
  while (!signal.aborted) {
    await clock.sleep(TICK_MS, signal).catch(() => {});
    if (signal.aborted) return;
    due += (world.size * share * TICK_MS) / 60_000;
    const now = Math.floor(due);
    due -= now;
    if (now > 0) world.mutate(now);
  }
}
