import { describe, expect, test } from 'vitest';
import { PageNumberPager, type PageNumberState } from '../../src/pagers/page-number.js';
import { pageOf, ReceivedNames } from './received.js';

const SPEC = { style: 'page-number', in: 'query', pageName: 'page', sizeName: 'pageSize', first: 1, size: 3 } as const;

/** One line an exchange: which page is asked for, what the service gives, what follows. Letters are records. */
interface Exchange {
  readonly page: number;
  readonly give: string;
  readonly total?: number;
  readonly hasNext?: boolean;
  readonly then: 'next' | 'done';
}

function play(exchanges: readonly Exchange[], spec: ConstructorParameters<typeof PageNumberPager>[1] = SPEC) {
  const pager = new PageNumberPager({ resource: 'contracts', envelope: '' }, spec);
  const received = new ReceivedNames();
  let state = pager.first();
  for (const { page, give, then, ...more } of exchanges) {
    expect(pager.request(state)).toEqual({ query: { page: String(page), pageSize: '3' } });
    const answer = pageOf(give, more);
    const advance = pager.next(state, answer, received.before(answer));
    expect(advance.kind).toBe(then);
    received.add(answer);
    if (advance.kind !== 'next') return { received, length: pager.lengthAtEnd(state, answer.count) };
    state = JSON.parse(JSON.stringify(advance.state)) as PageNumberState;
  }
  return { received, length: undefined };
}

describe('a page-number pager', () => {
  test.each<[string, number, Exchange[]]>([
    ['ends at once on an empty list', 0, [{ page: 1, give: '', total: 0, then: 'done' }]],
    [
      'ends where the total is reached',
      5,
      [
        { page: 1, give: 'ABC', total: 5, then: 'next' },
        { page: 2, give: 'DE', total: 5, then: 'done' },
      ],
    ],
    [
      'goes on while the newest total says so',
      4,
      [
        { page: 1, give: 'ABC', total: 3, hasNext: true, then: 'next' },
        { page: 2, give: 'D', total: 4, then: 'done' },
      ],
    ],
    [
      'ends a list without total where two pages bring nothing, and not on a short one',
      4,
      [
        { page: 1, give: 'ABC', then: 'next' },
        { page: 2, give: 'D', then: 'next' },
        { page: 3, give: '', then: 'next' },
        { page: 4, give: '', then: 'done' },
      ],
    ],
    [
      'ends where the service gives its last page, or its last records, for any number after it',
      4,
      [
        { page: 1, give: 'ABC', then: 'next' },
        { page: 2, give: 'D', then: 'next' },
        { page: 3, give: 'BCD', then: 'next' },
        { page: 4, give: 'BCD', then: 'done' },
      ],
    ],
    [
      'does not take a record that comes again for the end, so that it is missed that another one did not come',
      4,
      [
        { page: 1, give: 'ABC', then: 'next' },
        { page: 2, give: 'C', then: 'next' },
        { page: 3, give: '', then: 'next' },
        { page: 4, give: '', then: 'done' },
      ],
    ],
    [
      'counts a page that came again where it stood, if an empty one follows',
      8,
      [
        { page: 1, give: 'ABC', then: 'next' },
        { page: 2, give: 'DE', then: 'next' },
        { page: 3, give: 'CDE', then: 'next' },
        { page: 4, give: '', then: 'done' },
      ],
    ],
    [
      'counts it, too, if further records follow',
      7,
      [
        { page: 1, give: 'ABC', then: 'next' },
        { page: 2, give: 'D', then: 'next' },
        { page: 3, give: 'D', then: 'next' },
        { page: 4, give: 'EF', then: 'next' },
        { page: 5, give: '', then: 'next' },
        { page: 6, give: '', then: 'done' },
      ],
    ],
    [
      'ends by its last page alone, though the first page shows one record',
      3,
      [
        { page: 1, give: 'A', then: 'next' },
        { page: 2, give: 'BC', then: 'next' },
        { page: 3, give: 'BC', then: 'next' },
        { page: 4, give: 'BC', then: 'done' },
      ],
    ],
    [
      'does not end by the repetition of pages of one record, which come again in a list that is reordered',
      3,
      [
        { page: 1, give: 'A', then: 'next' },
        { page: 2, give: 'B', then: 'next' },
        { page: 3, give: 'B', then: 'next' },
        { page: 4, give: '', then: 'next' },
        { page: 5, give: '', then: 'done' },
      ],
    ],
    [
      'ends where the list says that no page follows',
      4,
      [
        { page: 1, give: 'ABC', hasNext: true, then: 'next' },
        { page: 2, give: 'D', hasNext: false, then: 'done' },
      ],
    ],
  ])('%s', (_what, length, exchanges) => {
    expect(play(exchanges).length).toBe(length);
  });

  test.each<[string, Exchange[]]>([
    ['an empty page where records stand', [{ page: 1, give: '', total: 4, then: 'done' }]],
    ['more records than the total', [{ page: 1, give: 'ABC', total: 2, then: 'done' }]],
    ['an end before the total is reached', [{ page: 1, give: 'ABC', total: 5, hasNext: false, then: 'done' }]],
  ])('refuses %s', (_what, exchanges) => {
    expect(() => play(exchanges)).toThrow(expect.objectContaining({ code: 'contradicting_envelope' }));
  });

  test('may begin at 0, and be in the body', () => {
    const pager = new PageNumberPager({ resource: 'contracts', envelope: '' }, { ...SPEC, in: 'body', first: 0 });
    expect(pager.request(pager.first())).toEqual({ body: { page: 0, pageSize: 3 } });
  });

  test('knows which requests follow while the total is not reached, by the size of the first page', () => {
    const pager = new PageNumberPager({ resource: 'contracts', envelope: '' }, SPEC);
    const page = pageOf('AB', { total: 9 });
    const advance = pager.next(pager.first(), page, new ReceivedNames().before(page));
    if (advance.kind !== 'next') throw new Error('the list is longer than that');
    const pages = (skip: number, count: number) =>
      pager.ahead(advance.state, skip, count).map(({ query }) => Number(query!['page']));
    expect([pages(0, 9), pages(1, 9), pages(0, 1)]).toEqual([[3, 4, 5], [4, 5], [3]]);
  });

  test('says where page 0 and page 1 are one page', () => {
    const pager = new PageNumberPager({ resource: 'contracts', envelope: '' }, { ...SPEC, first: 0 });
    const received = new ReceivedNames();
    let state = pager.first();
    const pages = ['ABC', 'ABC', 'DEF', 'GHI'].map((names) => pageOf(names, { total: 12 }));
    const ends = pages.map((page) => {
      const advance = pager.next(state, page, received.before(page));
      received.add(page);
      if (advance.kind === 'next') state = advance.state;
      return advance;
    });
    expect(ends.at(-1)).toEqual({ kind: 'done', doubted: { doubt: 'first_page_repeated' } });
  });

  test.each([{ total: 3 }, { hasNext: false }])(
    'is not sure of the end that a full first page tells by a named value: %j',
    (told) => {
      const end = (fields: object, names: string) => {
        const pager = new PageNumberPager({ resource: 'contracts', envelope: '', fields }, SPEC);
        const page = pageOf(names, told);
        return pager.next(pager.first(), page, new ReceivedNames().before(page));
      };
      expect(end({ total: 'shown', hasNext: 'more' }, 'ABC')).toEqual({ kind: 'done', doubted: { doubt: 'end_unproved' } });
      expect(end({}, 'ABC')).toEqual({ kind: 'done' });
    },
  );

  test('is not sure of an end where a full page comes again: it may be that of a limit', () => {
    const end = (last: string) => {
      const pager = new PageNumberPager({ resource: 'contracts', envelope: '' }, SPEC);
      const received = new ReceivedNames();
      let state = pager.first();
      for (const names of ['ABC', last, last, last]) {
        const page = pageOf(names);
        const advance = pager.next(state, page, received.before(page));
        received.add(page);
        if (advance.kind !== 'next') return advance;
        state = advance.state;
      }
      return undefined;
    };
    expect(end('DEF')).toMatchObject({ kind: 'done', doubted: { doubt: 'end_unproved' } });
    expect(end('DE')).toEqual({ kind: 'done' });
  });

  test('gives up on a service that answers every request with the same page', () => {
    const same = Array.from({ length: 2_000 }, (_, n): Exchange => ({ page: n + 1, give: 'ABC', then: 'next' }));
    expect(() => play(same)).toThrow(expect.objectContaining({ code: 'pager_misdeclared' }));
  });
});
