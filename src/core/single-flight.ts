import type { Clock } from './clock.js';

/**
 * Work that many ask for at once is done once: whoever asks while it is under way, or until `keepMs` after its end, gets the same answer.
 * A failure is told to whoever waited for it, and is not kept.
 */
export function singleFlight<T>(
  work: () => Promise<T>,
  { clock, keepMs }: { readonly clock: Pick<Clock, 'monotonic'>; readonly keepMs: number },
): () => Promise<T> {
  let answer: Promise<T> | undefined;
  let freshUntil = Infinity;

  async function keep(asked: Promise<T>): Promise<void> {
    try {
      await asked;
      freshUntil = clock.monotonic() + keepMs;
    } catch {
      answer = undefined;
    }
  }

  return () => {
    if (answer && clock.monotonic() < freshUntil) return answer;
    freshUntil = Infinity;
    answer = work();
    void keep(answer);
    return answer;
  };
}
