import { expect, test } from 'vitest';
import { parseLinkHeader } from '../../src/pagers/link-header.js';

test.each<[string, string, object[]]>([
  ['one link', '</a?p=2>; rel="next"', [{ target: '/a?p=2', rel: ['next'] }]],
  ['a relation without quotes, in capitals', '</a>;REL=Next', [{ target: '/a', rel: ['next'] }]],
  [
    'parameters without a value before another link',
    '</app.css>; rel=preload; as=style; nopush, </a?c=10>; rel="next"',
    [
      { target: '/app.css', rel: ['preload'] },
      { target: '/a?c=10', rel: ['next'] },
    ],
  ],
  ['commas, semicolons and brackets in a title', '</a>; title="x, <y>; rel=next"; rel=prev', [{ target: '/a', rel: ['prev'] }]],
  ['a quote in a title', '</a>; title="say \\"next\\""; rel=last', [{ target: '/a', rel: ['last'] }]],
  ['commas in an address', '</a?x=1,2>; rel="last next"', [{ target: '/a?x=1,2', rel: ['last', 'next'] }]],
  ['two relations, of which the first counts', '</a>; rel=first; rel=next', [{ target: '/a', rel: ['first'] }]],
  ['spaces around everything', ' < /a > ; rel = "next" ; type = "x" ', [{ target: '/a', rel: ['next'] }]],
  ['empty links and parameters', ',, </a>;; rel=next;, ,', [{ target: '/a', rel: ['next'] }]],
  ['an anchor', '</a>; rel=next; anchor="/b"', [{ target: '/a', rel: ['next'], anchor: '/b' }]],
  ['nothing', '', []],
])('reads %s', (_what, header, links) => {
  expect(parseLinkHeader(header)).toEqual(links);
});

test.each([
  'nonsense',
  '</a; rel=next',
  '</a>; rel="next',
  '</a> rel=next',
  '</a>; rel=next </b>',
  '</a>; rel="next"x, </b>',
  '/a; rel=next',
])('does not guess at %s', (header) => {
  expect(parseLinkHeader(header)).toBeUndefined();
});
