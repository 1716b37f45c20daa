import { expect, test } from 'vitest';
import { countFirstPages } from '../../src/pagers/first-page-again.js';
import type { Received } from '../../src/pagers/pager.js';
import { pageOf } from './received.js';

/** What a pass says whose pages have so many records: `=` is the first page again, `.` another one. */
function play(pages: string, count: number): number {
  let again = 0;
  for (const [n, what] of [...pages].entries()) {
    const received: Received = { repeats: 0, isFirstPage: what === '=', endsAsBefore: false, hasToken: () => false };
    const page = pageOf(Array.from({ length: count }, String));
    again = countFirstPages({ requests: n, again }, page, received, 'list', {
      'pager.skipName': 'offset',
      'fields.next': undefined,
    });
  }
  return again;
}

const misdeclared = expect.objectContaining({
  code: 'pager_misdeclared',
  message: expect.stringContaining('pager.skipName (offset), fields.next;'),
});

test.each([
  ['..==', 10],
  ['.==', 500],
  [`.${'='.repeat(7)}`, 3],
  [`.${'='.repeat(20)}`, 1],
])('the first page again and again is no coincidence: %s of %i records', (pages, count) => {
  expect(() => play(pages, count)).toThrow(misdeclared);
});

test.each([
  ['.=', 500, 1],
  ['.=.=.=.', 500, 0],
  [`.${'='.repeat(6)}`, 3, 6],
  ['====', 0, 0],
])('a list that moves may bring it: %s of %i records', (pages, count, again) => {
  expect(play(pages, count)).toBe(again);
});

test('a checkpoint of an earlier version has counted none', () => {
  const received: Received = { repeats: 2, isFirstPage: true, endsAsBefore: false, hasToken: () => false };
  expect(countFirstPages({ requests: 1 }, pageOf('AB'), received, 'list', {})).toBe(1);
});
