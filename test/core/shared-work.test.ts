import { expect, test } from 'vitest';
import { singleFlight } from '../../src/core/single-flight.js';

test('work under way is shared, its answer is kept for a while, and its failure is not', async () => {
  let now = 0;
  let calls = 0;
  let finish = (_error?: Error) => {};
  const ask = singleFlight(
    () => {
      calls += 1;
      return new Promise<number>((resolve, reject) => {
        finish = (error) => (error ? reject(error) : resolve(calls));
      });
    },
    { clock: { monotonic: () => now }, keepMs: 100 },
  );
  const first = [ask(), ask()];
  now += 5_000; // however long it takes
  first.push(ask());
  finish();
  expect(await Promise.all(first)).toEqual([1, 1, 1]);
  now += 99;
  expect(await ask()).toBe(1);
  now += 1;
  const second = [ask(), ask()];
  finish(new Error('away'));
  expect(await Promise.allSettled(second)).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
  const third = ask();
  finish();
  expect(await third).toBe(3);
});
