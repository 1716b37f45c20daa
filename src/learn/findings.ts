import { plainName } from '../pagers/around.js';
import type { Draft } from './draft.js';
import type { FoundPaging } from './find-paging.js';
import type { Cap } from './find-size.js';
import type { IdCandidate } from './ids.js';
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

/** Findings in sentences. They name members and parameters, but no values of records. */
export function findingsOf(seen: SeenList): readonly Finding[] {
  return [
    paging(seen),
    envelope(seen),
    total(seen),
    ids(seen),
    cap(seen),
    overlap(seen),
    order(seen),
    etag(seen),
    proof(seen),
  ].filter((finding): finding is Finding => finding !== undefined);
}

function paging({ paging: { chain, place, size, isSizeCut }, view }: SeenList): Finding {
  const sized = size && !isSizeCut ? ` ${size.name} is the size of a page.` : '';
  const cut =
    size && isSizeCut
      ? ` ${size.name} cuts the list itself: no page follows a request with it, so it is not the size of a page.`
      : '';
  const requests = size ? [size.page.request] : [];
  const finding = (says: string, more: readonly number[]): Finding => ({
    about: 'paging',
    says: says + sized + cut,
    requests: [...more, ...requests],
  });
  if (chain?.kind === 'link')
    return finding(`Each page names the address of the next one in ${chain.place ?? 'the Link header'}.`, [
      view.reference.request,
    ]);
  if (chain?.kind === 'token')
    return finding(`Each page names the next one by a token in ${chain.place}, which ${chain.name} takes.`, [chain.request]);
  if (chain)
    return finding(`${chain.name} takes a record's ${chain.member}; the page begins after that record.`, [chain.request]);
  if (place?.counts === 'pages')
    return finding(`${place.name} is the number of a page; the first one is ${place.first}.`, place.requests);
  if (place)
    return finding(
      `${place.name} is the position of a page's first record; positions begin with ${place.first}.`,
      place.requests,
    );
  return finding('The whole list came at once, and no known parameter shortens the page.', [view.reference.request]);
}

function envelope({ view: { dataPath, reference } }: SeenList): Finding {
  const says =
    dataPath.length === 0 ? 'The response is the array of records itself.' : `The records are in ${dataPath.join('.')}.`;
  return { about: 'envelope', says, requests: [reference.request] };
}

function total({ total: place, count, paging: { hasNext }, view }: SeenList): Finding {
  const requests = [view.reference.request];
  if (place !== undefined)
    return {
      about: 'total',
      says: `${place} has the total: ${count} at the time, whatever the page size.`,
      requests,
    };
  const flag = hasNext === undefined ? '' : ` ${hasNext} says whether another page follows.`;
  return { about: 'total', says: `The list has no total.${flag}`, requests };
}

function ids({ view, rehearsal }: SeenList): Finding {
  const [first, ...others] = view.ids.map(describeId);
  if (first === undefined)
    return {
      about: 'ids',
      says: 'No id was found: no member is set and different in every record.',
      requests: [view.reference.request],
    };
  const also = others.length > 0 ? ` So are ${others.slice(0, 3).join(', ')}.` : '';
  const rejected = rehearsal.rejected > 0 ? ` ${rehearsal.rejected} records of the rehearsal were rejected.` : '';
  return {
    about: 'ids',
    says: `${first} is set and different in each of the ${Math.max(view.reference.keys.length, rehearsal.records)} records seen.${also}${rejected}`,
    requests: [view.reference.request, ...rehearsal.requests],
  };
}

function describeId(candidate: IdCandidate): string {
  return typeof candidate === 'string' ? candidate : candidate.join(' with ');
}

function cap({ cap: found, draft, paging: { size } }: SeenList): Finding | undefined {
  if (!size || !found)
    return draft.isSizeRead ? undefined : { about: 'cap', says: "The page size is the service's own.", requests: [] };
  const { seen, asked, isCap, request, refusal } = found;
  const refused = refusal ? ` ${refusal.size} were refused${refusal.says ? ` ("${refusal.says}")` : ''}.` : '';
  const requests = [...(refusal ? [refusal.request] : []), request];
  if (isCap)
    return { about: 'cap', says: `A page has at most ${seen} records, although ${asked} were requested.${refused}`, requests };
  if (seen === asked)
    return { about: 'cap', says: `A page of ${asked} records came; no larger page was requested.${refused}`, requests };
  return { about: 'cap', says: `A request for ${asked} brought the whole list of ${seen}: no cap was seen.${refused}`, requests };
}

function overlap({ paging: { place }, rehearsal: { repeats, requests, pages } }: SeenList): Finding | undefined {
  if (pages < 2) return undefined;
  if (place?.counts === 'records')
    return repeats > 0
      ? { about: 'overlap', says: 'Pages that begin one record early bring that record again: they join.', requests }
      : { about: 'overlap', says: 'No page brought a record of the page before it, although that was requested.', requests };
  return {
    about: 'overlap',
    says: repeats === 0 ? 'No record came on two pages.' : `${repeats} records came on two pages.`,
    requests,
  };
}

function order({ view }: SeenList): Finding | undefined {
  if (view.order === 'unknown') return undefined;
  const says =
    view.order === 'same'
      ? 'The first page came again with the same records in the same order.'
      : 'The first page came again in another order.';
  return { about: 'order', says, requests: view.repetitions };
}

function etag({ etag: { answer, isFalse, requests } }: SeenList): Finding {
  if (isFalse) return { about: 'etag', says: 'Pages with different records had the same ETag, so ETags mean nothing.', requests };
  if (answer === 'none') return { about: 'etag', says: 'Pages have no ETag.', requests };
  const says = {
    'not-modified': ', and a request with it gets 304',
    'sent-again': ', but a request with it gets the whole page',
    unknown: '',
  }[answer];
  return { about: 'etag', says: `Each page has an ETag of its own${says}.`, requests };
}

const PROOFS = {
  join: 'in one pass, since its pages join',
  'token-chain': 'in one pass, since each page names the next',
  none: 'by two passes that agree, since nothing joins its pages',
} as const;

function proof({ rehearsal, total: place }: SeenList): Finding {
  const { pages, records, hasEnded, linkage, requests, failure, doubted, total: told } = rehearsal;
  const walked = `A rehearsal of this entry over ${pages} ${pages === 1 ? 'page' : 'pages'} received ${records} records`;
  if (pages === 0 && failure === undefined) return { about: 'proof', says: 'The entry was not rehearsed.', requests };
  if (failure !== undefined) return { about: 'proof', says: `${walked}, and failed: ${failure}`, requests };
  if (doubted)
    return {
      about: 'proof',
      says: `${walked}, and its end is in doubt (${doubted.doubt}). ${withoutQuotes(doubted.detail ?? '')}`.trim(),
      requests,
    };
  const held =
    place === undefined
      ? '; there is no total to compare with'
      : `, compared with the total${hasEnded && told !== undefined ? ` (${records} of ${told})` : ''}`;
  const end = hasEnded ? ' and saw the end of the list' : ' and did not reach the end of the list';
  return { about: 'proof', says: `${walked}${end}. A walk can prove the list ${PROOFS[linkage]}${held}.`, requests };
}

/** A detail without its quoted values, which may be page tokens. */
function withoutQuotes(detail: string): string {
  return detail.replaceAll(/"[^"]{5,}"/g, '"…"');
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
