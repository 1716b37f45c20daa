import { expect, test } from 'vitest';
import { putOffSeconds, refreshAfterSeconds, retryAfterSeconds } from '../../src/oauth/refresh-schedule.js';

test.each([
  [1800, undefined, 1440],
  [3600, undefined, 2880],
  [200, undefined, 140],
  [100, undefined, 50],
  [10, undefined, 5],
  [1800, 300, 1500],
  [1800, 5000, 900],
  [60, 10, 50],
])('a token of %i s with margin %s is refreshed after %i s', (lifetime, margin, after) => {
  expect(refreshAfterSeconds(lifetime, margin, 0)).toBe(after);
  const earliest = refreshAfterSeconds(lifetime, margin, 1);
  expect(earliest).toBeLessThanOrEqual(after);
  expect(earliest).toBeGreaterThanOrEqual(lifetime / 2);
});

test('attempts are put off for ever longer, up to five minutes', () => {
  expect([1, 2, 3, 4, 8, 9, 100].map((failures) => retryAfterSeconds(failures, undefined, 1))).toEqual([
    2, 4, 8, 16, 256, 300, 300,
  ]);
  expect(retryAfterSeconds(1, undefined, 0)).toBe(1);
  expect(retryAfterSeconds(1, 60_000, 0)).toBe(60);
  expect(retryAfterSeconds(1, 86_400_000, 0)).toBe(900);
});

test('after errors without an explanation and after lost answers, for ever longer, up to an hour', () => {
  const after = (isLost: boolean, random: number) =>
    [1, 2, 3, 4, 5, 6, 100].map((putOffs) => putOffSeconds(putOffs, { isLost, random }));
  expect(after(false, 1)).toEqual([10, 60, 300, 1_800, 3_600, 3_600, 3_600]);
  expect(after(true, 1)).toEqual([60, 300, 1_800, 3_600, 3_600, 3_600, 3_600]);
  expect(after(false, 0)[1]).toBe(54);
  expect(putOffSeconds(1, { isLost: false, askedMs: 30_000, random: 0 })).toBe(30);
  expect(putOffSeconds(1, { isLost: false, askedMs: 86_400_000, random: 0 })).toBe(900);
});
