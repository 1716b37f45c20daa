import { describe, expect, test } from 'vitest';
import { flagOf, headerValue, LINK_MEMBERS, nextOf, nextOfRecord, TOKEN_MEMBERS, totalOf } from '../../src/pagers/spellings.js';

const CANARY = 'c4n4ry';

describe('a total', () => {
  test.each([
    [0, 0],
    [7, 7],
    ['7', 7],
    [' 7 ', 7],
    ['007', 7],
    [null, undefined],
    [undefined, undefined],
    [-1, undefined],
    ['-1', undefined],
    ['', undefined],
    ['null', undefined],
    ['None', undefined],
  ])('written as %j is %s', (value, total) => {
    for (const isHeader of [true, false])
      expect(totalOf(value, isHeader)).toEqual(total === undefined ? { kind: 'absent' } : { kind: 'said', value: total });
  });

  test.each([
    ['7', 7],
    ['items 0-2/7', 7],
    ['items 0-2/*', undefined],
    ['0-2/7', 7],
    ['*/0', 0],
    ['employees */7', 7],
    ['items=0-2/7', 7],
    ['items 0 - 2 / 7', 7],
    ['7, 7', 7],
    ['7,7', 7],
    ['4096,4096', 4096],
    ['items 0-2/7, items 0-2/7', 7],
    ['12, 12, 12', 12],
  ])('in a header that says %j is %s', (text, total) => {
    expect(totalOf(headerValue(text), true)).toEqual(total === undefined ? { kind: 'absent' } : { kind: 'said', value: total });
  });

  test.each(['7, 8', '100,100', '1,234', '7 7', 'items 0-2', 'items 0-2/', 'items 0-2/7/9', 'of 7', '7.5', '1e3', '٧'])(
    'is not understood in a header that says %j',
    (text) => {
      expect(totalOf(headerValue(text), true)).toMatchObject({ kind: 'unclear' });
    },
  );

  test('is nothing else in a member, and its value is not told', () => {
    const texts = ['7 of 9', '0-2/7', '1,234', '7, 7', CANARY];
    for (const value of [7.5, -7, 1e300, true, false, [7], { value: 7 }, ...texts]) {
      const said = totalOf(value, false);
      expect(said).toMatchObject({ kind: 'unclear', found: expect.any(String) });
      expect(JSON.stringify(said)).not.toContain(CANARY);
    }
  });
});

describe('a flag', () => {
  test.each([
    [true, [true, 'true', 'TRUE', 'True', ' true ', 1, '1', 'yes', 'Y']],
    [false, [false, 'false', 'FALSE', 'False', 0, '0', 'no', 'N']],
    [undefined, [undefined, null, '', 'null', 'None']],
  ])('is %s in each spelling', (flag, values) => {
    for (const value of values)
      expect(flagOf(value)).toEqual(flag === undefined ? { kind: 'absent' } : { kind: 'said', value: flag });
  });

  test('is nothing else', () => {
    for (const value of [2, -1, 0.5, '2', '-1', 'maybe', 'true, false', [], {}, [true]])
      expect(flagOf(value)).toMatchObject({ kind: 'unclear' });
  });

  test('in a header that was sent twice is one', () => {
    expect(flagOf(headerValue('true, true'))).toEqual({ kind: 'said', value: true });
    expect(flagOf(headerValue('true, false'))).toMatchObject({ kind: 'unclear' });
  });
});

describe('a next page', () => {
  const NONE: unknown[] = [false, 0, -1, '0', '-1', 'null', 'NULL', 'None', 'undefined', 'false', ' ', [], {}];
  test.each(NONE.map((value) => ({ value })))('is none in $value', ({ value }) => {
    expect(nextOf(value, LINK_MEMBERS)).toEqual({ kind: 'none', spelling: 'other' });
  });

  test('is none in null and in an empty text, and untold where it is missing', () => {
    expect(nextOf(null, LINK_MEMBERS)).toEqual({ kind: 'none', spelling: 'null' });
    expect(nextOf('', LINK_MEMBERS)).toEqual({ kind: 'none', spelling: 'empty text' });
    expect(nextOf(undefined, LINK_MEMBERS)).toEqual({ kind: 'silent' });
  });

  test.each([
    [{ href: '/x?y=2' }, '/x?y=2'],
    [{ Href: '/x', title: 'Next' }, '/x'],
    [{ url: '/x' }, '/x'],
    [{ uri: '/x', href: '/x' }, '/x'],
    ['/x', '/x'],
  ])('is named by %j: %s', (value, token) => {
    expect(nextOf(value, LINK_MEMBERS)).toEqual({ kind: 'named', token });
  });

  test('is named by a token that is a number, or that an object holds', () => {
    for (const value of [42, { token: 42 }, { cursor: 42 }])
      expect(nextOf(value, TOKEN_MEMBERS)).toEqual({ kind: 'named', token: 42 });
    for (const value of [{ href: null }, { href: '' }, { href: false }])
      expect(nextOf(value, LINK_MEMBERS)).toMatchObject({ kind: 'none' });
  });

  test('is not understood as anything else, and its value is not told', () => {
    const links = [{ page: 2 }, { href: '/x', url: '/y' }, { href: { href: '/x' } }, { href: true }, { token: CANARY }];
    for (const value of [true, 1.5, 1e300, ['/x'], ...links]) {
      const said = nextOf(value, LINK_MEMBERS);
      expect(said).toMatchObject({ kind: 'unclear' });
      expect(JSON.stringify(said)).not.toContain(CANARY);
    }
  });

  test('may be any member of the last record', () => {
    for (const id of [0, -1, '0', 'none', 'null', 'a']) expect(nextOfRecord(id)).toEqual({ kind: 'named', token: id });
    for (const id of [true, false, [], {}, 1.5]) expect(nextOfRecord(id)).toMatchObject({ kind: 'unclear' });
  });
});
