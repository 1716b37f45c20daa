import { describe, expect, test } from 'vitest';
import { FREE, rateOf, refused } from '../../../src/http/budget/finding.js';
import type { RateLimitOptions } from '../../../src/sandbox/rate-limiter.js';
import { mostInSecond, type Outcome, type Simulation, shares, simulate } from './simulated-service.js';

/** `BUDGET_SEEDS=1000 npx vitest run test/http/budget/finding.test.ts` for a real campaign. */
const SEEDS = Number(process.env.BUDGET_SEEDS ?? 2);

async function simulateSeeds(simulation: Omit<Simulation, 'seed'>, seeds = SEEDS): Promise<Outcome[]> {
  const all: Outcome[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) all.push(await simulate({ ...simulation, seed }));
  return all;
}

/** The mean of what the seeds give, so that one unlucky coincidence does not decide. */
function meanShares(all: readonly Outcome[], ...period: [perSecond: number, from: number, to: number]) {
  const each = all.map((outcome) => shares(outcome, ...period));
  const mean = (name: 'used' | 'refused') => each.reduce((sum, one) => sum + one[name], 0) / each.length;
  return { used: mean('used'), refused: mean('refused') };
}

const LIMITERS: [string, Omit<RateLimitOptions, 'perSecond'>][] = [
  ['a bucket of 5', { kind: 'bucket', burst: 5 }],
  ['a bucket of a second', { kind: 'bucket' }],
  ['a bucket of two seconds', { kind: 'bucket', burst: 40 }],
  ['full seconds', { kind: 'window' }],
  ['any second', { kind: 'log' }],
];

describe.each(LIMITERS)('a service that counts by %s', (_, kind) => {
  describe.each([false, true])('with Retry-After: %s', (retryAfter) => {
    const limit = (perSecond: number) => ({ ...kind, perSecond, retryAfter });

    test('is found with few refusals, and used well', async () => {
      const all = await simulateSeeds({ seconds: 60, limits: [{ from: 0, options: limit(20) }] });
      const steady = meanShares(all, 20, 20, 60);
      expect(meanShares(all, 20, 0, 60).refused).toBeLessThan(0.035);
      expect(steady.refused).toBeLessThan(0.016);
      expect(steady.used).toBeGreaterThan(0.87);
      // A single run with real processes is held to 85 % (test/campaign/request-budget), so hardly any may use less.
      const poor = all.filter((outcome) => shares(outcome, 20, 20, 60).used <= 0.85);
      expect(poor.length).toBeLessThanOrEqual(0.01 * all.length);
    });

    test('is found again within 20 s when it is halved, and when it doubles', async () => {
      const limits = [
        { from: 0, options: limit(20) },
        { from: 40, options: limit(10) },
        { from: 80, options: limit(20) },
      ];
      const all = await simulateSeeds({ seconds: 130, limits });
      const doubled = meanShares(all, 20, 100, 130);
      expect(meanShares(all, 10, 60, 80).used).toBeGreaterThan(0.82);
      expect(doubled.used).toBeGreaterThan(0.82);
      expect(doubled.refused).toBeLessThan(0.02);
    });

    test('is hardly refused where the limit is set, and used nearly whole', async () => {
      const limits = [{ from: 0, options: limit(20) }];
      const set = meanShares(await simulateSeeds({ seconds: 60, limits, set: { requestsPerSecond: 20 } }), 20, 1, 60);
      expect(set.refused).toBeLessThan(0.005);
      expect(set.used).toBeGreaterThan(0.95);
    });
  });

  test('is found again within 20 s, too, where requests now and then come late', async () => {
    // With Retry-After a single refusal would be a second of fifteen.
    const limit = (perSecond: number) => ({ ...kind, perSecond, retryAfter: false });
    const limits = [
      { from: 0, options: limit(20) },
      { from: 30, options: limit(10) },
      { from: 65, options: limit(20) },
    ];
    const all = await simulateSeeds({ seconds: 100, limits, jitterMs: 1, stalls: 0.003 }, 2 * SEEDS);
    const used = all.map((outcome) => Math.min(shares(outcome, 10, 50, 65).used, shares(outcome, 20, 85, 100).used));
    // One run in a thousand is refused soon after two changes in a row because requests were late, and then steps down by a fifth.
    expect(Math.min(...used)).toBeGreaterThan(0.8);
    expect(used.filter((share) => share <= 0.85).length).toBeLessThanOrEqual(Math.ceil(0.01 * all.length));
  });

  test('is hardly refused more on a machine that now and then stands still', async () => {
    const limit = { ...kind, perSecond: 20, retryAfter: false };
    const stalled = { seconds: 60, limits: [{ from: 0, options: limit }], freezes: 12 };
    const found = meanShares(await simulateSeeds(stalled), 20, 20, 60);
    const set = meanShares(await simulateSeeds({ ...stalled, set: { requestsPerSecond: 20 } }), 20, 1, 60);
    expect(found.refused).toBeLessThan(0.016);
    expect(found.used).toBeGreaterThan(0.85);
    expect(set.refused).toBeLessThan(0.005);
    expect(set.used).toBeGreaterThan(0.9);
  });
});

test.each([1, 3, 8])('what is set is never exceeded in any second, by %i workers together', async (workers) => {
  const limits = [{ from: 0, options: { kind: 'bucket', perSecond: 1e9 } as const }];
  const set = { requestsPerSecond: 30 };
  for (const outcome of await simulateSeeds({ seconds: 20, limits, set, workers, jitterMs: 1 })) {
    expect(mostInSecond(outcome)).toBeLessThanOrEqual(30);
    // Eight workers that share the schedule need eleven seconds to warm up.
    expect(shares(outcome, 30, 12, 20).used).toBeGreaterThan(0.95);
  }
});

test.each([
  { perSecond: 2, most: 0.06 },
  { perSecond: 200, most: 0.02 },
])('a limit of $perSecond a second, far from the first guess, is found as well', async ({ perSecond, most }) => {
  const limits = [{ from: 0, options: { kind: 'window', perSecond, retryAfter: false } as const }];
  const found = meanShares(await simulateSeeds({ seconds: 90, limits }), perSecond, 30, 90);
  expect(found.used).toBeGreaterThan(0.8);
  expect(found.refused).toBeLessThan(most);
});

test.each([false, true])('a service of six requests a minute is found, too, with Retry-After: %s', async (retryAfter) => {
  const limits = [{ from: 0, options: { kind: 'bucket', burst: 1, perSecond: 0.1, retryAfter } as const }];
  const found = meanShares(await simulateSeeds({ seconds: 4_000, limits, pages: 2 }), 0.1, 1_000, 4_000);
  expect(found.used).toBeGreaterThan(0.85);
  expect(found.refused).toBeLessThan(0.05);
});

describe('what a refusal teaches', () => {
  const refusal = { accepted: 20, elapsed: 5, paused: 0, lead: 0 };

  test('the first one, a guess; and no request is sent for as long as a service may count', () => {
    expect(refused(FREE, refusal)).toEqual({ finding: { ...FREE, rate: 16, seeking: true }, pause: 1 });
    expect(refused(FREE, { ...refusal, retryAfter: 30 }).pause).toBe(30);
  });

  test('one that comes soon behind another, that less is needed', () => {
    const holding = { rate: 20, fallback: null, seeking: false, progress: 1 };
    expect(refused(holding, { ...refusal, elapsed: 1 }).finding.rate).toBe(16);
    expect(refused(holding, { ...refusal, elapsed: 6 }).finding.rate).toBeCloseTo(19.4);
  });

  test('an unused rate does not rise', () => {
    expect(rateOf({ rate: 20, seeking: false, progress: 3 })).toBe(20);
    expect(rateOf({ rate: 20, seeking: false, progress: 17 })).toBeCloseTo(40);
  });

  test('no rate comes to nothing', () => {
    let finding = { rate: 1, fallback: null, seeking: false, progress: 0 } as Parameters<typeof refused>[0];
    for (let n = 0; n < 100; n += 1) ({ finding } = refused(finding, { ...refusal, elapsed: 1 }));
    expect(finding.rate).toBeGreaterThan(0);
  });
});
