import { describe, expect, test } from 'vitest';
import type { ChainState } from '../../src/pagers/chain.js';
import { ContinuationPager } from '../../src/pagers/continuation.js';
import { pageOf, ReceivedNames } from './received.js';

const SPEC = { style: 'continuation', in: 'body', tokenName: 'continuationToken', sizeName: 'pageSize', size: 2 } as const;

function play(pages: Iterable<[keys: string, nextToken: string | undefined]>) {
  const pager = new ContinuationPager({ resource: 'documents', envelope: '' }, SPEC);
  const received = new ReceivedNames();
  const asked: unknown[] = [];
  let state = pager.first();
  for (const [keys, nextToken] of pages) {
    asked.push(pager.request(state).body);
    const page = pageOf(keys === '' ? [] : keys.split(' '), nextToken === undefined ? {} : { nextToken });
    const advance = pager.next(state, page, received.before(page));
    received.add(page);
    if (advance.kind === 'done') return { asked, received };
    state = JSON.parse(JSON.stringify(advance.state)) as ChainState;
  }
  throw new Error('the list did not end');
}

describe('a continuation pager', () => {
  test('follows the tokens, through empty pages too', () => {
    const { asked, received } = play([
      ['A B', 't1'],
      ['', 't2'],
      ['C', undefined],
    ]);
    expect(asked).toEqual([{ pageSize: 2 }, { pageSize: 2, continuationToken: 't1' }, { pageSize: 2, continuationToken: 't2' }]);
    expect([...received.names]).toEqual(['A', 'B', 'C']);
  });

  test('ends on an empty list', () => {
    expect(play([['', undefined]]).asked).toHaveLength(1);
  });

  test('puts its parameters into the query where the catalogue says so', () => {
    const pager = new ContinuationPager({ resource: 'documents', envelope: '' }, { ...SPEC, in: 'query', tokenName: 'page' });
    expect(pager.request({ ...pager.first(), token: 'a+b' })).toEqual({ query: { pageSize: '2', page: 'a+b' } });
  });

  test.each([
    ['names itself', ['t1', 't1']],
    ['leads back', ['t1', 't2', 't3', 't1']],
  ])('refuses a token that %s', (_what, tokens) => {
    expect(() => play(tokens.map((token, index) => [`R${index}`, token]))).toThrow(
      expect.objectContaining({ code: 'page_token_loop' }),
    );
  });

  test('gives up on pages that bring nothing new for ever', () => {
    function* barren(): Generator<[string, string]> {
      for (let page = 0; ; page += 1) yield [page % 2 === 0 ? '' : 'A B', `t${page}`];
    }
    expect(() => play(barren())).toThrow(expect.objectContaining({ code: 'walk_limit_exceeded' }));
  });

  test('bears a long row of empty pages', () => {
    const pages = Array.from({ length: 900 }, (_, page): [string, string] => ['', `t${page}`]);
    expect(play([...pages, ['A', undefined]]).received.size).toBe(1);
  });
});
