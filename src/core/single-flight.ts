import type { Clock } from './clock.js';

/**
 * Work that many ask for at once is done once: calls while it is under way, and until `keepMs` after its end, get the same result.
 * A failure rejects the calls that wait for it, and is not kept.
 */
export function singleFlight<T>(
  work: () => Promise<T>,
  { clock, keepMs }: { readonly clock: Pick<Clock, 'monotonic'>; readonly keepMs: number },
): () => Promise<T> {
  let result: Promise<T> | undefined;
  let freshUntil = Infinity;

  async function keep(asked: Promise<T>): Promise<void> {
    try {
      await asked;
      freshUntil = clock.monotonic() + keepMs;
    } catch {
      result = undefined;
    }
  }

  return () => {
    if (result && clock.monotonic() < freshUntil) return result;
    freshUntil = Infinity;
    result = work();
    void keep(result);
    return result;
  };
}
