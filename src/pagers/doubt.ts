import type { Sign } from './around.js';
import { describeSign } from './signs-of-more.js';

/**
 * Why the end of a list may be none, or not all of it may have come:
 * - `end_unproved`: its first page is the only one, and would look the same if the entry named the place of a value wrongly.
 * - `end_contradicted`: something around the records says that more follows, or that the request failed.
 * - `constants_lost`: its links lack constants of the entry, and the service refused them where they were added.
 * - `first_page_repeated`: the first page came again as the second one.
 */
export type EndDoubt = 'end_unproved' | 'end_contradicted' | 'constants_lost' | 'first_page_repeated';

/** A doubt about the end of a list, with what a person should know of this one. */
export interface Doubted {
  readonly doubt: EndDoubt;
  /** A sentence or two: what was seen, and what to write into the catalogue entry. */
  readonly detail?: string | undefined;
}

/** The doubt about an end that a sign contradicts. `place`: its member, as the entry of the list would name it. */
export function contradictedEnd(sign: Sign, place: string): Doubted {
  const reads = { flag: `fields: { hasNext: ${place} }`, page: 'style: page-number' };
  const readsOn = sign.kind === 'flag' || sign.kind === 'page' ? reads[sign.kind] : `fields: { next: ${place} }`;
  const detail =
    `Where the pages end, ${describeSign(sign)}. If more follows, have the entry of this list read it (${readsOn}); ` +
    `if it means nothing, write fields: { ignore: [${place}] }.`;
  return { doubt: 'end_contradicted', detail };
}

/** The doubt about an end at which the service refuses to page on, in words that tell of a limit or of its parameters. `index`: how many records stand before it. */
export function limitedEnd(index: number, status: number): Doubted {
  const detail =
    `After ${index} records the service refuses the next page with ${status}, and in words that do not tell of the end of the list: it may page through ` +
    'so many records only. Have the entry of this list page in another style, or ask for less by a filter (query).';
  return { doubt: 'end_contradicted', detail };
}

/** The doubt about a list if the service refused a page before others. `index`: how many records precede it. */
export function skippedPage(index: number, status: number): Doubted {
  const detail =
    `After ${index} records the service refused a page with ${status}, and gave the page after it: the records of the refused page were not received. ` +
    'See what the service says of that page; if it stays so, have the entry of this list page in another style.';
  return { doubt: 'end_contradicted', detail };
}

/** The doubt about an end behind which a service repeats a full page, or records that are not the last ones. `index`: how many records precede it. */
export function repeatedEnd(index: number): Doubted {
  const detail =
    `After ${index} records the service repeats earlier ones, and not as behind the end of a list: it may page through so many records only, or move them while it is read. ` +
    'Have the entry of this list name a total (fields), or page in another style.';
  return { doubt: 'end_unproved', detail };
}

/** The doubt about a page of records that is said to be a failure. */
export function deniedPage(denial: Sign, place: string): Doubted {
  const detail = `${describeSign(denial)} on a page with records. If it means nothing, write fields: { ignore: [${place}] } into the entry of this list.`;
  return { doubt: 'end_contradicted', detail };
}
