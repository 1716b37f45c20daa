import { expect, test } from 'vitest';
import { refreshAfterSeconds, retryAfterSeconds } from '../../src/oauth/refresh-schedule.js';

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
