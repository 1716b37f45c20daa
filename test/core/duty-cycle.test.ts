import { expect, test } from 'vitest';
import { limitDutyCycle } from '../../src/core/duty-cycle.js';

test.each([undefined, 1 / 4])('work takes at most its share of the time (%s)', async (share) => {
  let now = 0;
  let worked = 0;
  const clock = { monotonic: () => now };
  const work = async () => {
    worked += 50;
    now += 50;
  };
  const limited = limitDutyCycle(clock, work, share);
  await limited();
  expect(worked).toBe(50);
  for (; now < 100_000; now += 10) await limited();
  expect(worked / now).toBeLessThanOrEqual(share ?? 1 / 20);
  expect(worked / now).toBeGreaterThan((share ?? 1 / 20) * 0.9);
});

test('work that fails does not rest', async () => {
  let attempts = 0;
  const limited = limitDutyCycle({ monotonic: () => 0 }, async () => {
    attempts += 1;
    throw new Error('the database is away');
  });
  await expect(limited()).rejects.toThrow('the database is away');
  await expect(limited()).rejects.toThrow('the database is away');
  expect(attempts).toBe(2);
});
