/** Names of parameters by purpose. */
export interface ParameterNames {
  readonly size: readonly string[];
  /** Positions and page numbers; the beginning of the page shows which one it is. */
  readonly place: readonly string[];
  readonly token: readonly string[];
  /** Cursors that are the id of the last record. */
  readonly lastId: readonly string[];
}

/** The names that services give to their paging parameters, the likeliest first. */
export const KNOWN_NAMES: ParameterNames = {
  size: (
    'take $take limit $top pageSize per_page count top size page_size perPage _limit pagesize max' +
    ' maxResults max_results rows page[size] $limit itemsPerPage length PageSize Limit results' +
    ' page[limit] maxItems resultsPerPage recordsPerPage'
  ).split(' '),
  place: (
    'skip $skip offset page startIndex start pageNumber page_number pageIndex _start _page' +
    ' page[number] page[offset] $offset p from first PageNumber Page pageNo page_no currentPage' +
    ' startAt start_index firstResult position pageNum Offset Skip'
  ).split(' '),
  token: (
    'continuationToken pageToken page_token nextPageToken cursor token after next next_page_token' +
    ' $skiptoken skipToken skiptoken nextToken next_token nextCursor next_cursor page[after] page' +
    ' page[cursor] marker start_cursor pageCursor scroll_id bookmark starting_after startKey offset'
  ).split(' '),
  lastId: 'after starting_after startingAfter afterId after_id cursor lastId last_id since_id sinceId marker'.split(' '),
};

/** Names that usually come with a name of the size. */
const FAMILIES: Readonly<Record<string, readonly string[]>> = {
  take: ['skip'],
  $take: ['skip', '$skip'],
  $top: ['$skip'],
  top: ['skip'],
  limit: ['offset', 'page', 'cursor', 'after'],
  count: ['startIndex'],
  pageSize: ['page', 'pageNumber', 'continuationToken'],
  pagesize: ['page'],
  per_page: ['page', 'cursor'],
  page_size: ['page'],
  perPage: ['page'],
  size: ['page'],
  _limit: ['_start', '_page'],
  'page[size]': ['page[number]'],
  'page[limit]': ['page[offset]'],
  rows: ['start'],
  length: ['start'],
};

/** The known names of one kind: first the `hints` from the service's words and from members around its records, then names that go with the size. */
export function namesInOrder(kind: keyof ParameterNames, hints: Iterable<string>, sizeName?: string): readonly string[] {
  const known = KNOWN_NAMES[kind];
  const hinted = [...hints].filter((name) => known.includes(name));
  const family = (sizeName === undefined ? [] : (FAMILIES[sizeName] ?? [])).filter((name) => known.includes(name));
  return [...new Set([...hinted, ...family, ...known])];
}

/**
 * Names of members around a page's records that may also be parameters: `meta.per_page`, `pagination.pageSize`, `startIndex`,
 * `MetaInformation.@CurrentPage`. `places`: dot paths.
 */
export function namesAround(places: Iterable<string>): string[] {
  return [...places].flatMap((place) => {
    const name = place.replace(/^.*\./, '').replace(/^[@$]/, '');
    if (/^current_?page$/i.test(name)) return ['page'];
    return /^items_?per_?page$/i.test(name) ? [name, 'count'] : [name];
  });
}
