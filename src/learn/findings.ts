import { plainName } from '../pagers/around.js';
import type { Draft } from './draft.js';
import type { FoundPaging } from './find-paging.js';
import type { Cap } from './find-size.js';
import type { Finding } from './learned-list.js';
import type { ListView } from './list-view.js';
import type { ListAddress } from './probing.js';
import type { Rehearsal } from './rehearsal.js';
import type { TriedEtag } from './try-etag.js';

export interface SeenList {
  readonly address: ListAddress;
  readonly view: ListView;
  readonly paging: FoundPaging;
  /** The place of the list's total, and its value. */
  readonly total: string | undefined;
  readonly count: number | undefined;
  readonly cap: Cap | undefined;
  readonly draft: Draft;
  readonly rehearsal: Rehearsal;
  readonly etag: TriedEtag;
}

/** A finding in a sentence, and the requests that showed it; undefined: there is nothing to say. */
type Said = readonly [says: string, requests: readonly number[]] | undefined;

/** Findings in sentences. They name members and parameters, but no values of records. */
export function findingsOf(seen: SeenList): readonly Finding[] {
  const topics = { paging, envelope, total, ids, cap, overlap, order, etag, proof };
  return Object.entries(topics).flatMap(([about, describe]) => {
    const [says, requests] = describe(seen) ?? [];
    return says === undefined || requests === undefined ? [] : [{ about: about as keyof typeof topics, says, requests }];
  });
}

function paging({ paging: found, view }: SeenList): Said {
  const { size, isSizeCut } = found;
  const [says, requests] = waysOn(found, view);
  if (!size) return [says, requests];
  const sized = isSizeCut
    ? `${size.name} cuts the list itself: no page follows a request with it, so it is not the size of a page.`
    : `${size.name} is the size of a page.`;
  return [`${says} ${sized}`, [...requests, size.page.request]];
}

/** How one page leads to the next. */
function waysOn({ chain, place }: FoundPaging, { reference }: ListView): NonNullable<Said> {
  if (chain?.kind === 'link')
    return [`Each page names the address of the next one in ${chain.place ?? 'the Link header'}.`, [reference.request]];
  if (chain?.kind === 'token')
    return [`Each page names the next one by a token in ${chain.place}, which ${chain.name} takes.`, [chain.request]];
  if (chain) return [`${chain.name} takes a record's ${chain.member}; the page begins after that record.`, [chain.request]];
  if (place?.counts === 'pages')
    return [`${place.name} is the number of a page; the first one is ${place.first}.`, place.requests];
  if (place)
    return [`${place.name} is the position of a page's first record; positions begin with ${place.first}.`, place.requests];
  return ['The whole list came at once, and no known parameter shortens the page.', [reference.request]];
}

function envelope({ view: { dataPath, reference } }: SeenList): Said {
  const says =
    dataPath.length === 0 ? 'The response is the array of records itself.' : `The records are in ${dataPath.join('.')}.`;
  return [says, [reference.request]];
}

function total({ total: place, count, paging: { hasNext }, view }: SeenList): Said {
  const flag = hasNext === undefined ? '' : ` ${hasNext} says whether another page follows.`;
  const told = place !== undefined && `${place} has the total: ${count} at the time, whatever the page size.`;
  return [told || `The list has no total.${flag}`, [view.reference.request]];
}

function ids({ view: { ids: found, reference }, rehearsal }: SeenList): Said {
  const [first, ...others] = found.map((each) => [each].flat().join(' with '));
  if (first === undefined) return ['No id was found: no member is set and different in every record.', [reference.request]];
  const also = others.length > 0 ? ` So are ${others.slice(0, 3).join(', ')}.` : '';
  const rejected = rehearsal.rejected > 0 ? ` ${rehearsal.rejected} records of the rehearsal were rejected.` : '';
  const records = Math.max(reference.keys.length, rehearsal.records);
  return [
    `${first} is set and different in each of the ${records} records seen.${also}${rejected}`,
    [reference.request, ...rehearsal.requests],
  ];
}

function cap({ cap: found, draft, paging: { size } }: SeenList): Said {
  if (!size || !found) return draft.isSizeRead ? undefined : ["The page size is the service's own.", []];
  const { seen, asked, isCap, request, refusal } = found;
  const refused = refusal ? ` ${refusal.size} were refused${refusal.says ? ` ("${refusal.says}")` : ''}.` : '';
  const says = isCap
    ? `A page has at most ${seen} records, although ${asked} were requested.`
    : seen === asked
      ? `A page of ${asked} records came; no larger page was requested.`
      : `A request for ${asked} brought the whole list of ${seen}: no cap was seen.`;
  return [says + refused, [...(refusal ? [refusal.request] : []), request]];
}

function overlap({ paging: { place }, rehearsal: { repeats, requests, pages } }: SeenList): Said {
  if (pages < 2) return undefined;
  if (place?.counts !== 'records')
    return [repeats === 0 ? 'No record came on two pages.' : `${repeats} records came on two pages.`, requests];
  return repeats > 0
    ? ['Pages that begin one record early bring that record again: they join.', requests]
    : ['No page brought a record of the page before it, although that was requested.', requests];
}

function order({ view }: SeenList): Said {
  if (view.order === 'unknown') return undefined;
  return view.order === 'same'
    ? ['The first page came again with the same records in the same order.', view.repetitions]
    : ['The first page came again in another order.', view.repetitions];
}

function etag({ etag: { answer, isFalse, requests } }: SeenList): Said {
  if (isFalse) return ['Pages with different records had the same ETag, so ETags mean nothing.', requests];
  if (answer === 'none') return ['Pages have no ETag.', requests];
  const says = {
    'not-modified': ', and a request with it gets 304',
    'sent-again': ', but a request with it gets the whole page',
    unknown: '',
  }[answer];
  return [`Each page has an ETag of its own${says}.`, requests];
}

const PROOFS = {
  join: 'in one pass, since its pages join',
  'token-chain': 'in one pass, since each page names the next',
  none: 'by two passes that agree, since nothing joins its pages',
} as const;

function proof({ rehearsal, total: place }: SeenList): Said {
  const { pages, records, hasEnded, linkage, requests, failure, doubted, total: told } = rehearsal;
  const walked = `A rehearsal of this entry over ${pages} ${pages === 1 ? 'page' : 'pages'} received ${records} records`;
  if (failure !== undefined) return [`${walked}, and failed: ${failure}`, requests];
  if (pages === 0) return ['The entry was not rehearsed.', requests];
  if (doubted) {
    // A quoted value may be a page token.
    const detail = (doubted.detail ?? '').replaceAll(/"[^"]{5,}"/g, '"…"');
    return [`${walked}, and its end is in doubt (${doubted.doubt}). ${detail}`.trim(), requests];
  }
  const held =
    place === undefined
      ? '; there is no total to compare with'
      : `, compared with the total${hasEnded && told !== undefined ? ` (${records} of ${told})` : ''}`;
  const end = hasEnded ? ' and saw the end of the list' : ' and did not reach the end of the list';
  return [`${walked}${end}. A walk can prove the list ${PROOFS[linkage]}${held}.`, requests];
}

/** Questions that no request can answer, for the reader of the service's documentation. */
export function lookUpFor({
  paging: { chain, place, size },
  total: place_,
  count,
  view,
  cap: found,
  address,
}: SeenList): readonly string[] {
  const isCounted = chain?.kind === 'link' && countsInLink(chain.link);
  return [
    ...(place?.counts === 'records'
      ? ['Is the order of the list stable? Pages that join prove a list only then. If it is not, write order: unstable.']
      : []),
    ...(isCounted
      ? [
          'The links count pages or positions: if the list changes during a walk, records may shift between two pages unseen. Look up whether the links are stable; if not, name the parameters instead of following links.',
        ]
      : []),
    ...(view.order === 'other'
      ? ['The order changed from one request to the next: look up a parameter that sorts by id, and give it with --query.']
      : []),
    ...(place_ === undefined
      ? ['Can the service give a total, with a parameter or in a header? Without one, the end is only inferred.']
      : [
          'Does the total count exactly the records that this authorization may see? Some services count up to a limit, or estimate.',
        ]),
    ...(count === 5_000 || count === 10_000 ? [`The total is exactly ${count}: the service may not count any further.`] : []),
    ...(size && !found?.isCap ? ['How large may a page be, and does the service reduce or refuse a larger one?'] : []),
    'Does the list leave out records by default: inactive or ended ones, other departments, drafts? Look for parameters such as status or includeInactive, and for the rights of the person who authorizes.',
    ...(address.method === 'POST' ? ['The list was read by POST: make sure that this call only reads.'] : []),
  ];
}

const COUNTING = new Set(['page', 'pagenumber', 'pageno', 'pagenum', 'pageindex', 'p', 'offset', 'skip', 'start', 'startindex']);

function countsInLink(link: string): boolean {
  const parameters = new URLSearchParams(link.split('?')[1] ?? '');
  return [...parameters].some(([name, value]) => COUNTING.has(plainName(name.replaceAll(/[[\]$]/g, ''))) && /^\d+$/.test(value));
}
