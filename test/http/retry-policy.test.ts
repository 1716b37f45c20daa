import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.js';
import { MusterError } from '../../src/core/errors.js';
import { parseRetryAfter } from '../../src/http/retry-after.js';
import { withRetries } from '../../src/http/retry-policy.js';
import { ServiceError, statusError } from '../../src/http/service-error.js';

/** Sleeps take no time and are remembered. */
function recordingClock(): Clock & { readonly slept: number[] } {
  const slept: number[] = [];
  return {
    slept,
    now: () => 0,
    monotonic: () => 0,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      slept.push(ms);
    },
  };
}

const failure = (status: number, retryAfter?: string) =>
  statusError(
    'GET x',
    { status, headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter }, bytes: Buffer.alloc(0) },
    0,
  );

async function run(errors: unknown[], options: { signal?: AbortSignal; clock?: Clock } = {}) {
  const clock = recordingClock();
  const queue = [...errors];
  let calls = 0;
  const work = async () => {
    calls += 1;
    const error = queue.shift();
    if (error !== undefined) throw error;
    return 'ok';
  };
  const result = await withRetries(work, { clock, random: () => 0.5, ...options }).catch((error: unknown) => error);
  return { result, calls, slept: clock.slept };
}

describe('what is repeated', () => {
  test.each([408, 429, 500, 502, 503, 504])('%i', async (status) => {
    expect(await run([failure(status)])).toMatchObject({ result: 'ok', calls: 2 });
  });

  test.each(['service_unreachable', 'service_timeout'] as const)('%s', async (code) => {
    expect(await run([new ServiceError(code, 'x', { sent: true })])).toMatchObject({ result: 'ok', calls: 2 });
  });

  test.each([400, 401, 403, 404, 410, 422, 204])('not %i', async (status) => {
    expect(await run([failure(status)])).toMatchObject({ calls: 1, slept: [] });
  });

  test('not an error of another source, retryable or not', async () => {
    for (const error of [new MusterError('token_busy', 'x'), new TypeError('x'), new Error('x')]) {
      expect(await run([error])).toMatchObject({ result: error, calls: 1 });
    }
  });
});

test('five attempts with growing delays, then the last error', async () => {
  const errors = Array.from({ length: 9 }, () => failure(503));
  expect(await run(errors)).toEqual({ result: errors[4], calls: 5, slept: [500, 1000, 2000, 4000] });
});

describe('429', () => {
  test.each([undefined, '0'])('costs a request none of its attempts at first: Retry-After %s', async (retryAfter) => {
    const errors = [...Array.from({ length: 15 }, () => failure(429, retryAfter)), failure(503), failure(503)];
    const { result, calls, slept } = await run(errors);
    expect([result, calls]).toEqual(['ok', 18]);
    for (const ms of slept.slice(0, 15)) expect(ms).toBeLessThanOrEqual(200);
    expect(slept.slice(15)).toEqual([500, 1_000]);
  });

  test('ends in the end', async () => {
    const errors = Array.from({ length: 99 }, () => failure(429));
    expect(await run(errors)).toMatchObject({ result: errors[19], calls: 20 });
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  test.each([
    ['7', 7000],
    [' 0 ', 0],
    ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
    ['Wed, 31 Dec 2025 23:00:00 GMT', 0],
    ['1.5', 2000],
    ['2.0', 2000],
    ['0.2', 1000],
    ['3, 5', 5000],
    ['Thursday, 01-Jan-26 00:00:40 GMT', 40_000],
    ['Thu Jan  1 00:00:50 2026', 50_000],
    ['2026-01-01T01:00:20+01:00', 20_000],
    ['2026-01-01T00:00:20', undefined],
    ['2026-01-02', undefined],
    ['-5', undefined],
    ['1e3', undefined],
    ['5s', undefined],
    ['May 7', undefined],
    ['Thu, 41 Jan 2026 00:00:30 GMT', undefined],
    ['soon', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('%j', (value, ms) => expect(parseRetryAfter(value, now)).toBe(ms));

  test('is waited out, with a little on top and never less', async () => {
    expect((await run([failure(429, '7')])).slept).toEqual([7350]);
  });

  test('0 waits a little all the same', async () => {
    const errors = Array.from({ length: 9 }, () => failure(503, '0'));
    expect(await run(errors)).toMatchObject({ calls: 5, slept: [100, 100, 100, 100] });
  });

  test('of more than a minute is for the whole run to wait out', async () => {
    expect((await run([failure(503, '60')])).slept).toEqual([63_000]);
    const error = failure(503, '61');
    expect(await run([error])).toEqual({ result: error, calls: 1, slept: [] });
  });
});

test('an abort ends the wait with its own reason', async () => {
  const control = new AbortController();
  const stop = new Error('stopping');
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    sleep: async (_, signal) => {
      control.abort(stop);
      signal?.throwIfAborted();
    },
  };
  expect(await run([failure(503)], { signal: control.signal, clock })).toMatchObject({ result: stop, calls: 1 });
});
