import { expect, test } from 'vitest';
import { freeBuffers } from '../../src/core/free-buffers.js';

test('gives the memory of a buffer back at once', () => {
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 1_000; n += 1) freeBuffers([Buffer.alloc(1_000_000)]);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000);
});

test('every view of it is empty from then on', () => {
  const buffer = Buffer.alloc(100_000, 'x');
  const view = buffer.subarray(10, 20);
  freeBuffers([buffer]);
  expect([buffer.length, view.length, view.toString()]).toEqual([0, 0, '']);
  expect(() => freeBuffers([buffer])).not.toThrow();
});

test('a buffer that shares its memory is left alone', () => {
  const large = Buffer.alloc(100_000, 'x');
  freeBuffers([large.subarray(1)]);
  const small = Buffer.from('small');
  freeBuffers([small]);
  freeBuffers([Buffer.alloc(0)]);
  expect([large.length, small.toString()]).toEqual([100_000, 'small']);
});
