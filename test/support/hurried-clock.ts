import { type Clock, systemClock } from '../../src/core/clock.js';

/** The system's time, but for pauses, which take a hundredth: a walk that asks a page again does not hold up its test. */
export const hurriedClock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 100, signal) };
