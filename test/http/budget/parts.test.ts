import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { announcedLimit, exhaustedForMs } from '../../../src/http/budget/announced-limit.js';
import { divideShare } from '../../../src/http/budget/divide-share.js';
import { FairQueue } from '../../../src/http/budget/fair-queue.js';
import { InFlightWindow } from '../../../src/http/budget/in-flight-window.js';
import { RollingCount } from '../../../src/http/budget/rolling-count.js';

describe('what the headers announce', () => {
  test.each([
    [{ 'ratelimit-policy': '"default";q=100;w=10' }, 10],
    [{ 'ratelimit-policy': '"burst";q=50;w=1, "day";q=86400;w=86400' }, 50],
    [{ 'ratelimit-policy': '"day";q=1000;w=86400' }, undefined],
    [{ 'ratelimit-policy': '20;w=1' }, 20],
    [{ 'ratelimit-limit': '20, 20;w=1' }, 20],
    [{ ratelimit: '"default";r=19;t=1' }, undefined],
    [{ 'x-ratelimit-limit': '5000', 'x-ratelimit-remaining': '4999' }, undefined],
    [{ 'ratelimit-policy': '0;w=0' }, undefined],
    [{ 'ratelimit-policy': '"a,b;w=1";q=100;w=50' }, 2],
    [{ 'ratelimit-policy': '"bytes";q=65536;w=1;qu="content-bytes", "calls";q=10;w=5;qu="requests"' }, 2],
    [{ 'ratelimit-policy': '"atOnce";q=4;qu="concurrent-requests";w=1' }, undefined],
    [{ 'ratelimit-limit': '10, 10;window=1, 120;window=60' }, 2],
    [{ 'x-ratelimit-limit-second': '5' }, 5],
    [{ 'x-ratelimit-limit-second': '5', 'x-ratelimit-limit-minute': '120', 'x-ratelimit-limit-hour': '36000' }, 2],
    [{ 'x-ratelimit-limit-minute': '300, 300' }, 5],
    [{ 'x-ratelimit-limit-day': '100', 'x-ratelimit-limit-second': 'many' }, undefined],
    [{ 'x-shopify-shop-api-call-limit': '40/40', 'x-ratelimit-limit': '40/40' }, undefined],
    [{}, undefined],
  ])('%j', (headers, rate) => expect(announcedLimit(headers as Record<string, string>)).toBe(rate));

  test.each([
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '3' }, 3_000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1800000005' }, 5_000],
    [{ ratelimit: '"default";r=0;t=2' }, 2_000],
    [{ ratelimit: '"burst";r=0;t=2, "hour";r=0;t=7, "day";r=9;t=90' }, 7_000],
    [{ ratelimit: '"r=0;t=9";r=1;t=2' }, undefined],
    [{ ratelimit: 'limit=100, remaining=0, reset=5' }, 5_000],
    [{ ratelimit: 'limit=100, remaining=10, reset=5' }, undefined],
    [{ 'ratelimit-remaining': '0', 'ratelimit-reset': '1.5' }, 1_500],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1800000005000' }, 5_000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1800000005.5' }, 5_500],
    [{ 'x-ratelimit-remaining': '0, 0', 'x-ratelimit-reset': '3, 3' }, 3_000],
    [{ 'x-ratelimit-remaining': '0/40', 'x-ratelimit-reset': '3' }, 3_000],
    [{ 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': '1800000004' }, 4_000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'Fri, 15 Jan 2027 08:00:06 GMT' }, 6_000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2027-01-15T09:00:07+01:00' }, 7_000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2027-01-15T08:00:07' }, undefined],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'Fri, 15 Jan 2027 07:00:00 GMT' }, 0],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '-3' }, undefined],
    [{ 'x-ratelimit-remaining': '-1', 'x-ratelimit-reset': '3' }, undefined],
    [{ 'x-ratelimit-remaining-second': '0', 'x-ratelimit-limit-second': '5' }, 1_000],
    [{ 'x-ratelimit-remaining-second': '0', 'ratelimit-remaining': '0', 'ratelimit-reset': '2' }, 2_000],
    [{ 'x-ratelimit-remaining-minute': '0' }, undefined],
    [{ 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '3' }, undefined],
    [{ 'x-ratelimit-remaining': '0' }, undefined],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'soon' }, undefined],
  ])('nothing is left by %j', (headers, ms) =>
    expect(exhaustedForMs(headers as Record<string, string>, 1_800_000_000_000)).toBe(ms),
  );
});

describe('whose turn it is', () => {
  const drain = (queue: FairQueue<string>) => Array.from({ length: queue.size }, () => queue.take());

  test('one company after the other, however many requests one has', () => {
    const queue = new FairQueue<string>();
    for (let n = 0; n < 5; n += 1) queue.add({ company: 'giant', urgent: false }, `giant ${n}`);
    queue.add({ company: 'small', urgent: false }, 'small 0');
    queue.add({ company: 'tiny', urgent: false }, 'tiny 0');
    expect(drain(queue)).toEqual(['giant 0', 'small 0', 'tiny 0', 'giant 1', 'giant 2', 'giant 3', 'giant 4']);
    expect(queue.take()).toBeUndefined();
  });

  test('urgent requests go first, and the others never starve', () => {
    const queue = new FairQueue<string>();
    for (let n = 0; n < 2; n += 1) queue.add({ company: 'a', urgent: false }, `night ${n}`);
    for (let n = 0; n < 6; n += 1) queue.add({ company: 'b', urgent: true }, `day ${n}`);
    expect(drain(queue)).toEqual(['day 0', 'day 1', 'day 2', 'day 3', 'night 0', 'day 4', 'day 5', 'night 1']);
  });

  test('who leaves the queue is not served, and leaves once', () => {
    const queue = new FairQueue<string>();
    const leave = queue.add({ company: 'a', urgent: false }, 'gone');
    queue.add({ company: 'a', urgent: false }, 'here');
    leave();
    leave();
    expect([queue.size, queue.take(), queue.size]).toEqual([1, 'here', 0]);
    leave();
    expect(queue.size).toBe(0);
  });
});

describe('shares of the requests at once', () => {
  const claims = fc.array(fc.record({ wanted: fc.nat(40), held: fc.constant(0) }), { minLength: 1, maxLength: 6 });

  test('are all there is, and never more than anybody wants', () => {
    fc.assert(
      fc.property(claims, fc.integer({ min: 1, max: 64 }), fc.nat(100), (given, total, turn) => {
        const all = given.map((claim, index) => ({ ...claim, worker: `w${index}` }));
        const shares = all.map((own) =>
          divideShare(
            total,
            own,
            all.filter((other) => other !== own),
            turn,
          ),
        );
        const wanted = all.reduce((sum, claim) => sum + claim.wanted, 0);
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(Math.min(total, wanted));
        for (const [index, share] of shares.entries()) expect(share).toBeLessThanOrEqual(all[index]!.wanted);
      }),
    );
  });

  test('never exceed the total, in whatever order workers take theirs', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.record({ who: fc.nat(3), wanted: fc.nat(12) }), { maxLength: 60 }),
        (total, steps) => {
          const held = [0, 0, 0, 0];
          const wanted = [0, 0, 0, 0];
          for (const [turn, { who, wanted: now }] of steps.entries()) {
            wanted[who] = now;
            const others = held
              .map((each, index) => ({ worker: `w${index}`, held: each, wanted: wanted[index]! }))
              .filter((_, index) => index !== who);
            held[who] = divideShare(total, { worker: `w${who}`, wanted: now }, others, turn);
            expect(held.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(total);
          }
        },
      ),
    );
  });

  test('a rest goes around', () => {
    const others = [{ worker: 'b', wanted: 5, held: 0 }];
    expect([0, 1, 2].map((turn) => divideShare(1, { worker: 'a', wanted: 5 }, others, turn))).toEqual([1, 0, 1]);
  });
});

describe('the window of a process', () => {
  const answer = (window: InFlightWindow, count: number, ms = 5) => {
    for (let n = 0; n < count; n += 1) window.answered(ms, true);
  };

  test('is at full width after some hundred quick answers, and stays where it is not used', () => {
    const window = new InFlightWindow();
    answer(window, 200);
    expect(window.size).toBeGreaterThanOrEqual(64);
    const idle = new InFlightWindow();
    for (let n = 0; n < 200; n += 1) idle.answered(5, false);
    expect(idle.size).toBe(4);
  });

  test('does not widen while answers become slower', () => {
    const window = new InFlightWindow();
    answer(window, 30, 20);
    const { size } = window;
    for (let n = 0; n < 400; n += 1) window.answered(2_000, true);
    expect(window.size).toBeLessThan(size + 4);
  });

  test('is halved once for all that failed together, and widens slowly then', () => {
    const window = new InFlightWindow(40);
    for (const sentAt of [100, 110, 120]) window.narrow(sentAt, 130);
    expect(window.size).toBe(20);
    answer(window, 20);
    expect(window.size).toBe(20);
    window.narrow(140, 150);
    expect(window.size).toBe(10);
    for (let n = 0; n < 20; n += 1) window.narrow(1_000 + n, 1_000 + n);
    expect(window.size).toBe(1);
  });
});

test('a rolling count forgets what is too long ago', () => {
  const count = new RollingCount(1_000, 10);
  for (let at = 5_000; at < 6_000; at += 100) count.add(at);
  expect([count.total(5_999), count.total(6_500), count.total(60_000)]).toEqual([10, 4, 0]);
});
