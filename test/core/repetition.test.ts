import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PeriodicTask } from '../../src/core/periodic-task.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Work that goes on until it is let go. */
function slowWork() {
  const begun: (() => void)[] = [];
  return { begun, work: () => new Promise<void>((resolve) => void begun.push(resolve)) };
}

test('work that takes longer than its interval is not begun again beside itself', async () => {
  const { begun, work } = slowWork();
  const repetition = new PeriodicTask(1_000, work);
  repetition.start();
  expect(begun).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(begun).toHaveLength(1);
  begun[0]!();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(begun).toHaveLength(2);
  begun[1]!();
  await repetition.stop();
});

test('a stop waits for the work under way, and none follows', async () => {
  const { begun, work } = slowWork();
  const repetition = new PeriodicTask(1_000, work);
  repetition.start();
  await vi.advanceTimersByTimeAsync(1_000);
  let isStopped = false;
  const stopped = repetition.stop().then(() => (isStopped = true));
  await vi.advanceTimersByTimeAsync(5_000);
  expect([isStopped, begun.length]).toEqual([false, 1]);
  begun[0]!();
  await stopped;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(begun).toHaveLength(1);
});

test('what was stopped before it started never starts', async () => {
  const { begun, work } = slowWork();
  const repetition = new PeriodicTask(1_000, work);
  await repetition.stop();
  repetition.start();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(begun).toHaveLength(0);
});
