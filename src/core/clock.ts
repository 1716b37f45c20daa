import { setTimeout } from 'node:timers/promises';

/** Time as a dependency: everything that waits or compares times takes a Clock, so that tests own it. */
export interface Clock {
  /** Milliseconds since the epoch. May jump: never use it to measure a duration. */
  now(): number;
  /** Milliseconds since some fixed point; only ever grows. For durations and deadlines inside one process. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // Node's own sleep rejects with an AbortError that only names the reason as its cause.
  sleep: (ms, signal) => setTimeout(ms, undefined, { signal }).catch(() => Promise.reject(signal?.reason)),
};

/** Settles as `work` does, or rejects with the signal's reason once it aborts. The work itself goes on. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
