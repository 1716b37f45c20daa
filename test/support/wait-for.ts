import { setTimeout as sleep } from 'node:timers/promises';

/** Ends a wait that hangs. No machine is as slow, however much else it does. */
export const HANGS_MS = 300_000;

/**
 * Polls until `check` gives a truthy value, and returns it. After `timeoutMs` throws an error that names what was awaited;
 * what `check` last threw is its cause.
 */
export async function waitFor<T>(
  check: () => T | Promise<T>,
  { timeoutMs = HANGS_MS, intervalMs = 25, what }: { timeoutMs?: number; intervalMs?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const value = await check();
      if (value) return value;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain for ${what ?? String(check)}`, { cause });
    await sleep(intervalMs);
  }
}
