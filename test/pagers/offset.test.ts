import { describe, expect, test } from 'vitest';
import type { EndDoubt } from '../../src/pagers/doubt.js';
import { OffsetPager, type OffsetState } from '../../src/pagers/offset.js';
import type { Linkage } from '../../src/pagers/pager.js';
import { pageOf, ReceivedNames } from './received.js';

const BODY = { style: 'skip-take', in: 'body', skipName: 'skip', takeName: 'take' } as const;

/** One line an exchange: what is asked for, what the service gives, what follows. Letters are records. */
interface Exchange {
  readonly ask: readonly [skip: number, take: number];
  readonly give: string;
  readonly total?: number;
  readonly then: 'next' | 'again' | 'done';
}

interface Played {
  /** How the pages of the pass hang together. */
  readonly linkage: Linkage;
  /** How many records the list had when it ended. */
  readonly length?: number | undefined;
  readonly doubt?: EndDoubt | undefined;
}

function play(size: number, exchanges: readonly Exchange[]): Played {
  const pager = new OffsetPager({ resource: 'employees', envelope: '' }, { ...BODY, size });
  const received = new ReceivedNames();
  let state = pager.first();
  for (const [index, { ask, give, total, then }] of exchanges.entries()) {
    const [skip, take] = ask;
    expect(pager.request(state), `request ${index}`).toEqual({ body: { skip, take } });
    const page = pageOf(give, total === undefined ? {} : { total });
    const advance = pager.next(state, page, received.before(page));
    expect(advance.kind, `after request ${index}`).toBe(then);
    if (advance.kind !== 'again') received.add(page);
    if (advance.kind === 'done') {
      const doubt = advance.doubted?.doubt;
      return { linkage: pager.linkage(state), length: pager.lengthAtEnd(state, page.count), doubt };
    }
    state = JSON.parse(JSON.stringify(advance.state)) as OffsetState;
  }
  return { linkage: pager.linkage(state) };
}

describe('an offset pager', () => {
  test.each<[string, number, Exchange[]]>([
    ['ends at once on an empty list', 3, [{ ask: [0, 3], give: '', total: 0, then: 'done' }]],
    ['ends at once on a list of one page', 3, [{ ask: [0, 3], give: 'ABC', total: 3, then: 'done' }]],
    [
      'begins each further page one record early',
      3,
      [
        { ask: [0, 3], give: 'ABC', total: 5, then: 'next' },
        { ask: [2, 3], give: 'CDE', total: 5, then: 'done' },
      ],
    ],
    [
      'takes what a clamped first page gives for the page size',
      500,
      [
        { ask: [0, 500], give: 'AB', total: 4, then: 'next' },
        { ask: [1, 2], give: 'BC', total: 4, then: 'next' },
        { ask: [2, 2], give: 'CD', total: 4, then: 'done' },
      ],
    ],
    [
      'advances by what was received where later pages are shorter',
      4,
      [
        { ask: [0, 4], give: 'ABCD', total: 6, then: 'next' },
        { ask: [3, 4], give: 'DE', total: 6, then: 'next' },
        { ask: [4, 4], give: 'EF', total: 6, then: 'done' },
      ],
    ],
    [
      'steps back until a page joins, and never takes an empty page for the end',
      3,
      [
        { ask: [0, 3], give: 'ABC', total: 6, then: 'next' },
        { ask: [2, 3], give: 'F', total: 3, then: 'again' },
        { ask: [1, 3], give: 'EF', total: 3, then: 'again' },
        { ask: [0, 3], give: 'DEF', total: 3, then: 'done' },
      ],
    ],
    [
      'does not step back beyond the front of a list that has shrunk to nothing',
      2,
      [
        { ask: [0, 2], give: 'AB', total: 4, then: 'next' },
        { ask: [1, 2], give: '', total: 0, then: 'again' },
        { ask: [0, 2], give: '', total: 0, then: 'done' },
      ],
    ],
    [
      'goes on while the newest total says so',
      3,
      [
        { ask: [0, 3], give: 'ABC', total: 4, then: 'next' },
        { ask: [2, 3], give: 'CDE', total: 6, then: 'next' },
        { ask: [4, 3], give: 'EF', total: 6, then: 'done' },
      ],
    ],
    [
      'ends a bare array where nothing is behind the overlap, nor a whole size further on',
      3,
      [
        { ask: [0, 3], give: 'ABC', then: 'next' },
        { ask: [2, 3], give: 'CD', then: 'next' },
        { ask: [3, 3], give: 'D', then: 'next' },
        { ask: [6, 3], give: '', then: 'done' },
      ],
    ],
    [
      'ends an empty bare array',
      3,
      [
        { ask: [0, 3], give: '', then: 'next' },
        { ask: [3, 3], give: '', then: 'done' },
      ],
    ],
    [
      'ends a bare array whose service repeats its last page for whatever is behind it',
      3,
      [
        { ask: [0, 3], give: 'ABC', then: 'next' },
        { ask: [2, 3], give: 'C', then: 'next' },
        { ask: [5, 3], give: 'ABC', then: 'done' },
      ],
    ],
    [
      'steps back in a bare array that has become shorter',
      3,
      [
        { ask: [0, 3], give: 'ABC', then: 'next' },
        { ask: [2, 3], give: '', then: 'again' },
        { ask: [1, 3], give: 'D', then: 'again' },
        { ask: [0, 3], give: 'CD', then: 'next' },
        { ask: [1, 3], give: 'D', then: 'next' },
        { ask: [4, 3], give: '', then: 'done' },
      ],
    ],
  ])('%s', (_what, size, exchanges) => {
    expect(play(size, exchanges).linkage).toBe('join');
  });

  test.each<[string, number, Exchange[]]>([
    [
      'page size one',
      1,
      [
        { ask: [0, 1], give: 'A', total: 2, then: 'next' },
        { ask: [1, 1], give: 'B', total: 2, then: 'done' },
      ],
    ],
    [
      'a bare array of one record, which may be a page size of one',
      5,
      [
        { ask: [0, 5], give: 'A', then: 'next' },
        { ask: [1, 1], give: '', then: 'next' },
        { ask: [2, 5], give: '', then: 'done' },
      ],
    ],
    [
      'a page that holds nothing but the overlap',
      3,
      [
        { ask: [0, 3], give: 'ABC', total: 5, then: 'next' },
        { ask: [2, 3], give: 'C', total: 5, then: 'next' },
        { ask: [3, 3], give: 'DE', total: 5, then: 'done' },
      ],
    ],
    [
      'records behind a gap in a bare array, which are read on from there',
      3,
      [
        { ask: [0, 3], give: 'ABC', then: 'next' },
        { ask: [2, 3], give: 'C', then: 'next' },
        { ask: [5, 3], give: 'FG', then: 'next' },
        { ask: [7, 3], give: '', then: 'next' },
        { ask: [10, 3], give: 'J', then: 'next' },
        { ask: [11, 3], give: '', then: 'next' },
        { ask: [14, 3], give: '', then: 'done' },
      ],
    ],
  ])('cannot join: %s', (_what, size, exchanges) => {
    expect(play(size, exchanges).linkage).toBe('none');
  });

  test('is not sure of an end behind which another record than the last comes again', () => {
    const behind = (last: string): Exchange[] => [
      { ask: [0, 3], give: 'ABC', then: 'next' },
      { ask: [2, 3], give: 'CD', then: 'next' },
      { ask: [3, 3], give: 'D', then: 'next' },
      { ask: [6, 3], give: last, then: 'done' },
    ];
    expect(play(3, behind('A'))).toMatchObject({ linkage: 'join', doubt: 'end_unproved' });
    expect(play(3, behind('CD'))).toMatchObject({ linkage: 'join', length: 4, doubt: undefined });
  });

  test('does not end a bare array of pages of one record where one comes again: two may have changed places', () => {
    const exchanges: Exchange[] = [
      { ask: [0, 1], give: 'A', then: 'next' },
      { ask: [1, 1], give: 'B', then: 'next' },
      { ask: [2, 1], give: 'A', then: 'next' },
      { ask: [3, 1], give: '', then: 'next' },
      { ask: [4, 1], give: '', then: 'done' },
    ];
    expect(play(1, exchanges)).toEqual({ linkage: 'none', length: 3 });
  });

  test.each<[string, Exchange[]]>([
    ['an empty first page of a list that has records', [{ ask: [0, 2], give: '', total: 4, then: 'done' }]],
    [
      'an empty later page where records stand',
      [
        { ask: [0, 2], give: 'AB', total: 4, then: 'next' },
        { ask: [1, 2], give: '', total: 4, then: 'done' },
      ],
    ],
    [
      'a page that reaches beyond the total',
      [
        { ask: [0, 2], give: 'AB', total: 3, then: 'next' },
        { ask: [1, 2], give: 'BCD', total: 3, then: 'done' },
      ],
    ],
  ])('refuses %s', (_what, exchanges) => {
    expect(() => play(2, exchanges)).toThrow(expect.objectContaining({ code: 'contradicting_envelope' }));
  });

  test('spells its parameters as the catalogue says, where the catalogue says', () => {
    const odata = new OffsetPager(
      { resource: 'absences', envelope: '' },
      { style: 'odata', in: 'query', skipName: '$skip', takeName: '$top', size: 200 },
    );
    expect(odata.request({ ...odata.first(), offset: 199 })).toEqual({ query: { $skip: '199', $top: '200' } });
  });

  test('knows which requests follow if every page brings what it is asked for', () => {
    const pager = new OffsetPager({ resource: 'employees', envelope: '' }, { ...BODY, size: 4 });
    const first = pager.next(pager.first(), pageOf('ABCD', { total: 11 }), new ReceivedNames().before(pageOf('')));
    if (first.kind !== 'next') throw new Error('the list is longer than that');
    expect(pager.request(first.state)).toEqual({ body: { skip: 3, take: 4 } });
    expect(pager.ahead(first.state, 0, 9)).toEqual([{ body: { skip: 6, take: 4 } }, { body: { skip: 9, take: 4 } }]);
    expect(pager.ahead(first.state, 1, 9)).toEqual([{ body: { skip: 9, take: 4 } }]);
    expect(pager.ahead(first.state, 0, 1)).toHaveLength(1);
    expect(pager.ahead(pager.first(), 0, 9)).toEqual([]);
  });

  test.each([
    { totals: { total: 1_000 }, code: 'pager_misdeclared' },
    { totals: {}, code: 'pager_misdeclared' },
  ])('gives up on a service that answers every request with the same page: $code', ({ totals, code }) => {
    const pager = new OffsetPager({ resource: 'employees', envelope: '' }, { ...BODY, size: 3 });
    const received = new ReceivedNames();
    const page = pageOf('ABC', totals.total === undefined ? {} : { total: totals.total });
    const walk = () => {
      let state = pager.first();
      for (let requests = 0; requests < 2_000; requests += 1) {
        const advance = pager.next(state, page, received.before(page));
        received.add(page);
        if (advance.kind === 'done') return;
        state = advance.state;
      }
    };
    expect(walk).toThrow(expect.objectContaining({ code }));
    expect(received.size).toBe(3);
  });
});
