import { type EntryDraft, placesOf } from './entry.js';
import type { FoundPaging } from './find-paging.js';
import type { Cap } from './find-size.js';
import type { ListToLearn } from './learned-list.js';
import type { ListView } from './list-view.js';
import type { ListAddress } from './probing.js';
import { tellsWhole } from './totals.js';

/** An entry that was found. */
export interface Draft {
  readonly entry: EntryDraft;
  /** Records that a page may have, as far as was seen. */
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

/** The size of a page where the service takes more. */
const USUAL_SIZE = 500;
const MOST_SIZE = 10_000;
/** Records from which on positions, page numbers and what is neither can be told apart. */
const FEW = 4;

/** Puts what was seen into an entry; undefined where no style fits. */
export function draftOf(seen: Seen): Draft | undefined {
  const { list, address, view, paging, total } = seen;
  const { method, query, body } = address;
  const found = pagerOf(seen);
  if (!found) return undefined;
  const { pager, isSizeRead, largest } = found;
  const [id] = view.ids;
  const isPlaced = paging.place !== undefined;
  const isToken = paging.chain?.kind === 'token';
  // A list by position has its default place for a total, unless it is bare; a link says the end by itself.
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
    guesses: [
      ...(id === undefined
        ? ['No member and no few members together tell the records apart: name the id yourself (id: […]).']
        : []),
      ...(!paging.chain && !isPlaced && !isToldWhole(view)
        ? ['Nothing shows that this is the whole list: look up whether it is paged, and by which parameters.']
        : []),
      ...(paging.place?.isGuessed
        ? [
            `The order changes from one request to the next, so that nothing shows what ${paging.place.name} does: it is guessed from its name.`,
          ]
        : []),
      ...(view.reference.keys.length < FEW ? ['So few records show little of the paging: try a company that has more.'] : []),
    ],
  };
}

/** Constants as people write them. */
function asWritten(query: ListAddress['query']): Record<string, string | boolean> {
  const entries = Object.entries(query).map(([name, value]) => [
    name,
    value === 'true' ? true : value === 'false' ? false : value,
  ]);
  return Object.fromEntries(entries);
}

function nextOf({ chain }: FoundPaging): string | undefined {
  if (chain?.kind === 'last-id') return `last ${chain.member}`;
  return chain?.place;
}

function pagerOf({
  address,
  view,
  paging,
  cap,
  total,
}: Seen): (Pick<Draft, 'isSizeRead' | 'largest'> & { pager: EntryDraft['pager'] }) | undefined {
  const { chain, place, size, isSizeCut } = paging;
  const whole = view.reference.keys.length;
  const isSizeRead = size !== undefined && !isSizeCut;
  const largest = isSizeRead ? (cap?.seen ?? whole) : whole;
  const most = cap && !cap.isCap && cap.seen < cap.asked ? cap.asked : largest;
  const length = isSizeRead ? Math.min(most, USUAL_SIZE) : Math.min(whole, MOST_SIZE);
  const where = { in: address.method === 'GET' ? 'query' : 'body' };
  const common = { isSizeRead, largest: isSizeRead ? most : length };
  const sizeName = isSizeRead ? size.name : undefined;
  if (chain?.kind === 'link') return { ...common, pager: { style: 'next-link', sizeName: sizeName ?? 'none', size: length } };
  if (chain)
    return {
      ...common,
      pager: { style: 'continuation', ...where, tokenName: chain.name, ...(sizeName && { sizeName }), size: length },
    };
  if (place?.counts === 'pages')
    return {
      ...common,
      pager: {
        style: 'page-number',
        ...where,
        pageName: place.name,
        ...(sizeName && { sizeName }),
        first: place.first,
        size: length,
      },
    };
  if (place) {
    const isOData = place.name === '$skip' && sizeName === '$top';
    const first = place.first === 1 ? { first: 1 } : {};
    return isOData
      ? { ...common, pager: { style: 'odata', ...first, size: length } }
      : {
          ...common,
          pager: { style: 'skip-take', ...where, skipName: place.name, takeName: sizeName ?? 'take', ...first, size: length },
        };
  }
  // The whole list came at once, and nothing says that there is more.
  const comesWhole =
    size === undefined && address.method === 'GET' && view.reference.signs.length === 0 && mayBeWhole(view, total);
  return comesWhole ? { ...common, pager: { style: 'next-link', sizeName: 'none', size: MOST_SIZE } } : undefined;
}

/** Whether a first page that nothing makes shorter or longer may be the list: one of as many records as pages usually have is none. */
function mayBeWhole(view: ListView, total: string | undefined): boolean {
  const count = view.reference.keys.length;
  return (
    total === undefined && count < MOST_SIZE && (isToldWhole(view) || ![10, 12, 15, 25].some((usual) => count % usual === 0))
  );
}

function isToldWhole(view: ListView): boolean {
  return view.tallies.some(tellsWhole);
}
