import type { z } from 'zod';
import { CONTINUATION_SCHEMA, ContinuationPager } from './continuation.js';
import type { ListShape } from './envelope.js';
import { NEXT_LINK_SCHEMA, NextLinkPager } from './next-link.js';
import { ODATA_SCHEMA, OffsetPager, SKIP_TAKE_SCHEMA } from './offset.js';
import { PAGE_NUMBER_SCHEMA, PageNumberPager } from './page-number.js';
import type { Pager } from './pager.js';
import type { Placed } from './spec.js';

/**
 * The paging styles: what a catalogue entry says of its pager, with the defaults of the style; the pager itself; and where a page names
 * the next one, in styles whose pages do.
 */
export const PAGER_STYLES = {
  'skip-take': { schema: SKIP_TAKE_SCHEMA, Pager: OffsetPager, namesNextPage: undefined },
  odata: { schema: ODATA_SCHEMA, Pager: OffsetPager, namesNextPage: undefined },
  continuation: { schema: CONTINUATION_SCHEMA, Pager: ContinuationPager, namesNextPage: 'token' },
  'page-number': { schema: PAGE_NUMBER_SCHEMA, Pager: PageNumberPager, namesNextPage: undefined },
  'next-link': { schema: NEXT_LINK_SCHEMA, Pager: NextLinkPager, namesNextPage: 'link' },
} as const;

type Style = keyof typeof PAGER_STYLES;

/** How a list is paged and how its parameters are spelt. Sizes are records a page. */
export type PagerSpec = { [S in Style]: Placed<z.output<(typeof PAGER_STYLES)[S]['schema']>> }[Style];

/** The pager of a list. */
export function pagerFor(list: ListShape & { readonly pager: PagerSpec }): Pager {
  const { pager: spec } = list;
  // The style chooses class and spec alike, which the compiler cannot tell of two unions.
  const { Pager } = PAGER_STYLES[spec.style] as { Pager: new (list: ListShape, spec: PagerSpec) => Pager };
  return new Pager(list, spec);
}

/** The style of a name, which may be anything. */
export function styleNamed(name: unknown): (typeof PAGER_STYLES)[Style] | undefined {
  return typeof name === 'string' && Object.hasOwn(PAGER_STYLES, name) ? PAGER_STYLES[name as Style] : undefined;
}
