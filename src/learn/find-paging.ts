import { type FoundChain, findLastId, findToken, linkOf } from './find-chain.js';
import { type FoundPlace, findPlace } from './find-place.js';
import { type FoundSize, findSize } from './find-size.js';
import type { ListView } from './list-view.js';

/** The paging of a list as requests have shown it. */
export interface FoundPaging {
  readonly size: FoundSize | undefined;
  readonly chain: FoundChain | undefined;
  readonly place: FoundPlace | undefined;
  /** The member that says that another page follows, as a catalogue entry names it. */
  readonly hasNext: string | undefined;
  /** The size cuts the list itself: a page requested with it leads nowhere, although the list goes on. */
  readonly isSizeCut: boolean;
}

/** Flags of these names say that no page follows; the others say that one does. */
const SAYS_LAST = /(^|\.)(is_?)?last(_?page)?$/i;

/**
 * Finds the style of a list: first the parameter of the size, then a link or token in the pages, then positions and page numbers, and
 * finally the id of the last record as a cursor.
 */
export async function findPaging(view: ListView, hints: readonly string[], askedSize: string | undefined): Promise<FoundPaging> {
  const whole = view.reference;
  const found = await findSize(view, hints);
  const size = found ?? (askedSize === undefined ? undefined : { name: askedSize, page: whole });
  const short = size?.page ?? whole;
  const sized = size === undefined ? {} : { [size.name]: short.keys.length };
  const hasNext = short.signs.find(
    ({ kind, member }) => kind === 'flag' && !SAYS_LAST.test(member) && !member.startsWith('header '),
  )?.member;
  const common = { hasNext, isSizeCut: false, chain: undefined, place: undefined };

  const link = view.address.method === 'GET' ? linkOf(short.signs) : undefined;
  if (link) return { ...common, size, chain: link };
  const wholeLink = view.address.method === 'GET' ? linkOf(whole.signs) : undefined;
  if (wholeLink) return { ...common, size, chain: wholeLink, isSizeCut: true };
  const token = await findToken(view, short, sized);
  if (token) return { ...common, size, chain: token };
  const place = await findPlace(view, size && { name: size.name, value: short.keys.length }, hints);
  if (place && !size) {
    // Some services read a size only together with a page number.
    view.needed = { ...view.needed, [place.name]: place.first };
    return { ...common, size: await findSize(view, hints), place };
  }
  if (place) return { ...common, size, place };
  const lastId = hasNext === undefined ? undefined : await findLastId(view, short, sized);
  return { ...common, size, chain: lastId };
}
