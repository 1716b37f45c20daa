import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { randomOf } from '../pagers/shifting-list.js';
import { redisUrl } from '../support/redis.js';
import { CHAOS_STEPS } from './chaos-steps.js';
import { ChaosWorld, shuffled } from './chaos-world.js';
import { shareOf } from './share.js';

// Whatever Muster and its servers suffer, one after the other and while every company is synced again and again: once it is over, the mirrors equal
// the service, no run is left, and no refresh token was sent twice whose answer had arrived. `FIRST_SEED` draws other moments and another order.

const ROUNDS = shareOf(20);
/** Steps of a round: all of them, unless a gate has time for a few. */
const STEPS = Number(process.env.CHAOS_STEPS ?? CHAOS_STEPS.length);
const SEED = Number(process.env.FIRST_SEED ?? 1);

let world: ChaosWorld;

beforeAll(async () => {
  if (!redisUrl()) return;
  world = await ChaosWorld.open(randomOf(SEED * 7_919));
});
afterAll(async () => {
  await world?.close();
});

test.skipIf(!redisUrl())(`${ROUNDS} × ${STEPS} steps leave nothing behind (seed ${SEED})`, async () => {
  const { sandbox } = world.deployment;
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const step of shuffled(CHAOS_STEPS, world.random).slice(0, STEPS)) {
      const reused = sandbox.reusedRefreshTokens;
      const began = performance.now();
      try {
        await world.underLoad(() => step.take(world));
        const { lost, faults } = await world.settle();
        expect(faults).toEqual([]);
        // A spent token is sent again only where its answer was lost, and never a third time.
        expect(lost.filter((reason) => reason !== 'refresh_outcome_unknown')).toEqual([]);
        expect(sandbox.reusedRefreshTokens - reused).toBeLessThanOrEqual(lost.length);
        if (!step.losesAnswers) expect([lost, sandbox.reusedRefreshTokens - reused]).toEqual([[], 0]);
        console.info(`${step.name}: ${Math.round(performance.now() - began)} ms, ${lost.length} lost`);
      } catch (cause) {
        throw new Error(`seed ${SEED}, round ${round}, ${step.name}: ${(cause as Error).message}`, { cause });
      }
    }
  }
  expect((await world.stop()).filter((end) => !isDeepStrictEqual(end, { code: 0, signal: null }))).toEqual([]);
});
