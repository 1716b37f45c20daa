import { type EntryDraft, placesOf } from './entry.js';
import type { FoundPaging } from './find-paging.js';
import type { Cap } from './find-size.js';
import type { ListToLearn } from './learned-list.js';
import type { ListView } from './list-view.js';
import type { ListAddress } from './probing.js';
import { tellsWhole } from './totals.js';

export interface Draft {
  readonly entry: EntryDraft;
  /** The most records that a page was seen to have. */
  readonly largest: number;
  /** Whether the service reads the size of a page. */
  readonly isSizeRead: boolean;
  /** Sentences that name the parts that are only guessed. */
  readonly guesses: readonly string[];
}

interface Seen {
  readonly list: Pick<ListToLearn, 'path' | 'base'>;
  readonly address: ListAddress;
  readonly view: ListView;
  readonly paging: FoundPaging;
  readonly total: string | undefined;
  readonly cap: Cap | undefined;
}

/** The page size if the service allows more. */
const USUAL_SIZE = 500;
const MOST_SIZE = 10_000;
/** With fewer records, positions and page numbers cannot be told apart. */
const FEW = 4;

/** Builds an entry; undefined if no style fits. */
export function draftOf(seen: Seen): Draft | undefined {
  const { list, address, view, paging, total } = seen;
  const { method, query, body } = address;
  const found = pagerOf(seen);
  if (!found) return undefined;
  const { pager, isSizeRead, largest } = found;
  const [id] = view.ids;
  const isPlaced = paging.place !== undefined;
  const isToken = paging.chain?.kind === 'token';
  // Lists by position have a default place for the total, unless they are bare arrays. A link shows the end by itself.
  const told = total ?? (isPlaced && view.dataPath.length > 0 ? 'none' : undefined);
  const needsFlag = isPlaced ? total === undefined : paging.chain !== undefined && paging.chain.kind !== 'link';
  const places = placesOf(
    { data: view.dataPath, total: told, hasNext: needsFlag ? paging.hasNext : undefined, next: nextOf(paging) },
    { total: 'totalRecords', ...(isToken && { hasNext: 'hasNextPage', next: 'nextPageToken' }) },
  );
  return {
    entry: {
      method,
      ...(list.base !== undefined && { base: list.base }),
      path: list.path,
      ...(Object.keys(query).length > 0 && { query: asWritten(query) }),
      ...(Object.keys(body).length > 0 && { body }),
      pager,
      ...places,
      ...(id !== undefined && { id: [id] }),
    },
    largest,
    isSizeRead,
    guesses: guessesOf(seen),
  };
}

function guessesOf({ view, paging: { chain, place } }: Seen): readonly string[] {
  const guesses: string[] = [];
  if (view.ids.length === 0)
    guesses.push('No member, and no combination of members, identifies the records: name the id yourself (id: […]).');
  if (!chain && !place && !isToldWhole(view))
    guesses.push('Nothing shows that this is the whole list: look up whether it is paged, and with which parameters.');
  if (place?.isGuessed)
    guesses.push(
      `The order changes from one request to the next, so no request shows what ${place.name} does: its meaning is guessed from its name.`,
    );
  if (view.reference.keys.length < FEW)
    guesses.push('The list has too few records to show how it is paged: try a company with more.');
  return guesses;
}

function asWritten(query: ListAddress['query']): Record<string, string | boolean> {
  const written = (value: string) => (value === 'true' || value === 'false' ? value === 'true' : value);
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, written(value)]));
}

function nextOf({ chain }: FoundPaging): string | undefined {
  if (chain?.kind === 'last-id') return `last ${chain.member}`;
  return chain?.place;
}

function pagerOf(seen: Seen): (Pick<Draft, 'isSizeRead' | 'largest'> & { pager: EntryDraft['pager'] }) | undefined {
  const { view, cap } = seen;
  const { chain, place, size, isSizeCut } = seen.paging;
  const whole = view.reference.keys.length;
  const isSizeRead = size !== undefined && !isSizeCut;
  const largest = isSizeRead ? (cap?.seen ?? whole) : whole;
  const most = cap && !cap.isCap && cap.seen < cap.asked ? cap.asked : largest;
  const length = isSizeRead ? Math.min(most, USUAL_SIZE) : Math.min(whole, MOST_SIZE);
  const style = styleOf(seen, isSizeRead ? size.name : undefined);
  const isWhole = !chain && !place;
  return style && { isSizeRead, largest: isSizeRead ? most : length, pager: { ...style, size: isWhole ? MOST_SIZE : length } };
}

/** The style and its parameters; undefined if none fits. */
function styleOf({ address, view, paging, total }: Seen, sizeName: string | undefined): EntryDraft['pager'] | undefined {
  const { chain, place, size } = paging;
  const where = { in: address.method === 'GET' ? 'query' : 'body' };
  const sized = sizeName === undefined ? {} : { sizeName };
  if (chain?.kind === 'link') return { style: 'next-link', sizeName: 'none', ...sized };
  if (chain) return { style: 'continuation', ...where, tokenName: chain.name, ...sized };
  if (place?.counts === 'pages') return { style: 'page-number', ...where, pageName: place.name, ...sized, first: place.first };
  if (place) {
    const first = place.first === 1 ? { first: 1 } : {};
    if (place.name === '$skip' && sizeName === '$top') return { style: 'odata', ...first };
    return { style: 'skip-take', ...where, skipName: place.name, takeName: sizeName ?? 'take', ...first };
  }
  const isWhole = size === undefined && address.method === 'GET' && view.reference.signs.length === 0 && mayBeWhole(view, total);
  return isWhole ? { style: 'next-link', sizeName: 'none' } : undefined;
}

/** Whether a first page whose size no parameter changes may be the whole list. A count that is usual for pages speaks against it. */
function mayBeWhole(view: ListView, total: string | undefined): boolean {
  const count = view.reference.keys.length;
  return (
    total === undefined && count < MOST_SIZE && (isToldWhole(view) || ![10, 12, 15, 25].some((usual) => count % usual === 0))
  );
}

function isToldWhole(view: ListView): boolean {
  return view.tallies.some(tellsWhole);
}
