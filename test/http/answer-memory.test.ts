import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { HttpClient } from '../../src/http/http-client.js';
import { defaultBudget, MemoryShort, type Reservation, ResponseMemory } from '../../src/http/response-memory.js';
import { fakeService } from './fake-service.js';

const MB = 1024 * 1024;

test('whatever is asked for and given back, never more than the budget is taken, and everybody gets their share', () => {
  const step = fc.record({
    what: fc.constantFrom('reserve', 'guess', 'fit', 'settle', 'release', 'free'),
    n: fc.nat(20),
    bytes: fc.nat(50),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const memory = new ResponseMemory(120);
      const all: Reservation[] = [];
      const sum = () => all.filter(({ granted }) => !granted).reduce((bytes, { share }) => bytes + share, 0);
      for (const { what, n, bytes } of steps) {
        const each = all[n % all.length];
        if (what === 'reserve') all.push(memory.reserve(bytes));
        else if (what === 'guess') all.push(...[memory.reserveIfFree(bytes) ?? []].flat());
        else if (what === 'settle') each?.settle(Buffer.alloc(bytes));
        else if (what === 'release') each?.release();
        else if (what === 'free') each?.free();
        else {
          try {
            each?.fit(bytes);
          } catch (error) {
            if (bytes * 3 <= 120) expect(error).toBeInstanceOf(MemoryShort);
            else expect(error).toMatchObject({ code: 'response_too_large' });
          }
        }
        expect(memory.used).toBe(sum());
        expect(memory.used).toBeLessThanOrEqual(120);
      }
      // Each has its share once those before it are done.
      for (const each of all) {
        expect(each.granted).toBeUndefined();
        each.release();
      }
      expect(memory.used).toBe(0);
    }),
  );
});

test('who asked first gets it first, however little the others want', async () => {
  const memory = new ResponseMemory(30 * MB);
  const [first, large, small] = [memory.reserve(6 * MB), memory.reserve(9 * MB), memory.reserve(1)];
  expect([first.granted, memory.isShort, memory.reserveIfFree(1)]).toEqual([undefined, true, undefined]);
  const order: string[] = [];
  const waiting = [large.granted!.then(() => order.push('large')), small.granted!.then(() => order.push('small'))];
  first.release();
  await Promise.all(waiting);
  expect([order, memory.isShort]).toEqual([['large', 'small'], false]);
});

test('who does not wait any more is passed over, and knows it', async () => {
  const memory = new ResponseMemory(30 * MB);
  const [first, second, third] = [memory.reserve(10 * MB), memory.reserve(10 * MB), memory.reserve(10 * MB)];
  const known = second.granted;
  second.release();
  await known;
  first.release();
  expect(third.granted).toBeUndefined();
  expect(() => second.fit(1)).toThrow(MemoryShort);
});

test.each([
  ['a large machine', 4_345, 25_000, 512],
  ['--max-old-space-size=256', 304, 25_000, 304],
  ['a container of 1 GB', 2_096, 1_024, 448],
  ['a container of 512 MB', 2_096, 512, 192],
  ['a container of 128 MB', 2_096, 128, 16],
])('unset, %s gives answers what it can spare', (_, heapMegabytes, megabytes, budget) => {
  expect(defaultBudget(heapMegabytes * MB, megabytes * MB)).toBe(budget * MB);
});

describe('an answer', () => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  async function ask(how: 'measured' | 'chunked' | 'gzip' | 'br' | 'deflate', body: Buffer, memory?: Reservation) {
    const service = await fakeService((_, response) => {
      if (how !== 'measured' && how !== 'chunked') response.setHeader('content-encoding', how);
      if (how === 'measured') response.setHeader('content-length', body.length);
      response.write(body.subarray(0, 1_000));
      response.end(body.subarray(1_000));
    });
    const http = new HttpClient();
    closers.push(() => http.close(), service.close);
    return http.send({ method: 'GET', url: service.url, memory });
  }
  const page = Buffer.alloc(2 * MB, 'a');
  const bodies = [
    ['measured', page],
    ['chunked', page],
    ['gzip', gzipSync(page)],
    // The end of the last member tells of that alone.
    ['gzip', Buffer.concat([gzipSync(page.subarray(9)), gzipSync('a'.repeat(9))])],
    // These say nothing of their length.
    ['br', brotliCompressSync(page)],
    ['deflate', deflateSync(page)],
  ] as const;

  test.each(bodies)('takes what it needs, and keeps that: %s', async (how, body) => {
    const memory = new ResponseMemory(200 * MB);
    const reservation = memory.reserve(10);
    expect((await ask(how, body, reservation)).bytes.equals(page)).toBe(true);
    expect(memory.used).toBe(3 * page.length);
  });

  test.each(bodies)('is given up where others have the memory: %s', async (how, body) => {
    const memory = new ResponseMemory(200 * MB);
    const others = memory.reserve((200 * MB - 3 * MB) / 3);
    const reservation = memory.reserve(10);
    await expect(ask(how, body, reservation)).rejects.toThrow(MemoryShort);
    others.release();
    expect((await ask(how, body, reservation)).bytes.equals(page)).toBe(true);
  });

  test.each(bodies.slice(0, 3))('that is larger than all of it is refused, and says what it needs: %s', async (how, body) => {
    const reservation = new ResponseMemory(5 * MB).reserve(10);
    await expect(ask(how, body, reservation)).rejects.toMatchObject({
      code: 'response_too_large',
      retryable: false,
      message: expect.stringMatching(
        how === 'chunked' ? /ANSWER_MEMORY_MB to [67]/ : /2 MB or more.*6 MB.*keeps 5 MB.*ANSWER_MEMORY_MB to 6/,
      ),
    });
  });

  test('without a reservation has 8 MB at most', async () => {
    expect((await ask('measured', Buffer.alloc(8 * MB))).bytes).toHaveLength(8 * MB);
    await expect(ask('chunked', Buffer.alloc(8 * MB + 1))).rejects.toMatchObject({ code: 'response_too_large' });
  });
});
