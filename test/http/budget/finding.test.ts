import { describe, expect, test } from 'vitest';
import { FREE, rateOf, refused } from '../../../src/http/budget/finding.js';
import type { RateLimitOptions } from '../../../src/sandbox/rate-limiter.js';
import { shares, simulate } from './simulated-service.js';

const SEEDS = Array.from({ length: Number(process.env.SIMULATION_SEEDS ?? 20) }, (_, index) => index + 1);

/** The mean of what the seeds give, so that one unlucky coincidence does not decide. */
function mean(each: (seed: number) => { used: number; refused: number }): { used: number; refused: number } {
  const all = SEEDS.map(each);
  const of = (name: 'used' | 'refused') => all.reduce((sum, one) => sum + one[name], 0) / all.length;
  return { used: of('used'), refused: of('refused') };
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

    test('is found with few refusals, and used well', () => {
      const limits = [{ from: 0, options: limit(20) }];
      const all = SEEDS.map((seed) => simulate({ seed, seconds: 60, limits }));
      const search = mean((seed) => shares(all[seed - 1]!, 20, 0, 60));
      const steady = mean((seed) => shares(all[seed - 1]!, 20, 20, 60));
      expect(search.refused).toBeLessThan(0.035);
      expect(steady.refused).toBeLessThan(0.016);
      expect(steady.used).toBeGreaterThan(0.85);
    });

    test('is found again within 20 s when it is halved, and when it doubles', () => {
      const limits = [
        { from: 0, options: limit(20) },
        { from: 40, options: limit(10) },
        { from: 80, options: limit(20) },
      ];
      const all = SEEDS.map((seed) => simulate({ seed, seconds: 130, limits }));
      expect(mean((seed) => shares(all[seed - 1]!, 10, 60, 80)).used).toBeGreaterThan(0.82);
      expect(mean((seed) => shares(all[seed - 1]!, 20, 100, 130)).used).toBeGreaterThan(0.82);
      expect(mean((seed) => shares(all[seed - 1]!, 20, 100, 130)).refused).toBeLessThan(0.02);
    });

    test('is hardly refused where the limit is set, and used nearly whole', () => {
      const limits = [{ from: 0, options: limit(20) }];
      const { used, refused: share } = mean((seed) => shares(simulate({ seed, seconds: 60, limits, set: 20 }), 20, 1, 60));
      expect(share).toBeLessThan(0.005);
      expect(used).toBeGreaterThan(0.95);
    });
  });

  test('is found again within 20 s, too, where requests now and then come late', () => {
    // With Retry-After a single refusal would be a second of fifteen.
    const limit = (perSecond: number) => ({ ...kind, perSecond, retryAfter: false });
    const limits = [
      { from: 0, options: limit(20) },
      { from: 30, options: limit(10) },
      { from: 65, options: limit(20) },
    ];
    for (let seed = 1; seed <= 200; seed += 1) {
      const arrivals = simulate({ seed, seconds: 100, limits, jitterMs: 1, stalls: 0.003 });
      expect(shares(arrivals, 10, 50, 65).used, `seed ${seed}`).toBeGreaterThan(0.85);
      expect(shares(arrivals, 20, 85, 100).used, `seed ${seed}`).toBeGreaterThan(0.85);
    }
  });
});

test.each([1, 3, 8])('what is set is never exceeded in any second, by %i workers together', (workers) => {
  const none = { kind: 'log', perSecond: 1e9 } as const;
  for (const seed of SEEDS) {
    const arrivals = simulate({ seed, seconds: 20, limits: [{ from: 0, options: none }], set: 30, workers, jitterMs: 1 });
    for (const [index, { at }] of arrivals.entries()) {
      const inSecond = arrivals.slice(index).findIndex((later) => later.at >= at + 1);
      expect(inSecond).toBeLessThanOrEqual(30);
    }
  }
});

test('a limit far below, or far above, is found as well', () => {
  for (const perSecond of [2, 200]) {
    const limits = [{ from: 0, options: { kind: 'window', perSecond, retryAfter: false } as const }];
    const { used, refused: share } = mean((seed) => shares(simulate({ seed, seconds: 90, limits }), perSecond, 30, 90));
    expect(used).toBeGreaterThan(0.8);
    expect(share).toBeLessThan(perSecond === 2 ? 0.06 : 0.02);
  }
});

describe('what a refusal teaches', () => {
  const refusal = { accepted: 20, elapsed: 5, paused: 0, lead: 0 };

  test('the first one, a guess; and nobody asks for as long as a service may count', () => {
    expect(refused(FREE, refusal)).toEqual({ finding: { ...FREE, rate: 16, seeking: true }, pause: 1 });
    expect(refused(FREE, { ...refusal, retryAfter: 30 }).pause).toBe(30);
  });

  test('one that comes soon behind another, that less is needed', () => {
    const holding = { rate: 20, fallback: null, seeking: false, progress: 1 };
    expect(refused(holding, { ...refusal, elapsed: 1 }).finding.rate).toBe(16);
    expect(refused(holding, { ...refusal, elapsed: 6 }).finding.rate).toBeCloseTo(19.4);
  });

  test('a rate that nobody uses does not rise', () => {
    expect(rateOf({ rate: 20, fallback: null, seeking: false, progress: 3 })).toBe(20);
    expect(rateOf({ rate: 20, fallback: null, seeking: false, progress: 17 })).toBeCloseTo(40);
  });

  test('no rate comes to nothing', () => {
    let finding = { rate: 1, fallback: null, seeking: false, progress: 0 } as Parameters<typeof refused>[0];
    for (let n = 0; n < 100; n += 1) ({ finding } = refused(finding, { ...refusal, elapsed: 1 }));
    expect(finding.rate).toBeGreaterThan(0);
  });
});
