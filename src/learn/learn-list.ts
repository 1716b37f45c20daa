import type { Endpoint } from '../catalogue/endpoint.js';
import { redactRecord } from '../privacy/redact.js';
import type { Privacy } from '../privacy/rules.js';
import { agreement } from './agreement.js';
import { type Draft, draftOf } from './draft.js';
import { type EntryComments, type EntryDraft, endpointOf, entryText } from './entry.js';
import { findPaging } from './find-paging.js';
import { findCap } from './find-size.js';
import { findingsOf, lookUpFor } from './findings.js';
import { type FirstLook, lookFirst } from './first-look.js';
import type { Finding, LearnedList, ListToLearn } from './learned-list.js';
import { ListView, type Order } from './list-view.js';
import { nothingFound } from './nothing-found.js';
import { namesAround } from './parameter-names.js';
import { Probing, type ProbingParts, RequestsSpent } from './probing.js';
import { NO_REHEARSAL, type Rehearsal, rehearse } from './rehearsal.js';
import { totalPlaces } from './totals.js';
import { type TriedEtag, tryEtag } from './try-etag.js';

/** Requests reserved for the ETag check after the rehearsal. */
const FOR_ETAG = 2;
/** The most characters of a sample shown. */
const LONGEST_SAMPLE = 2_000;

/**
 * Reads the first pages of a list and finds its catalogue entry. Sends at most MOST_REQUESTS requests, within the request budget, and
 * stores nothing. Throws errors of tokens and budget; every response of the service, or none, is a finding. A TimeoutError of the signal
 * ends the look with the findings so far.
 */
export async function learnList(list: ListToLearn, parts: ProbingParts): Promise<LearnedList> {
  const probing = new Probing(parts);
  try {
    const first = await lookFirst(probing, list.address, list.isMethodGiven);
    if ('page' in first && first.page.records.length > 0) return await learnFrom(probing, list, first);
    if ('page' in first) return nothingFound(probing, { address: first.address, isEmpty: true });
    return nothingFound(probing, first);
  } catch (error) {
    if (!(error instanceof RequestsSpent) && !(error instanceof Error && error.name === 'TimeoutError')) throw error;
    return nothingFound(probing, { address: list.address, isSpent: true });
  }
}

async function learnFrom(probing: Probing, list: ListToLearn, first: FirstLook): Promise<LearnedList> {
  const view = new ListView(probing, first.address, first, list.name);
  const asked = Object.entries(first.asked);
  const sizes = asked.filter(([, value]) => value > 1).map(([name]) => name);
  await view.repeat(first.asked);
  view.needed = Object.fromEntries(asked.filter(([, value]) => value === 1));
  const isOData = typeof first.page.rest === 'object' && first.page.rest !== null && '@odata.context' in first.page.rest;
  const hints = [...first.hints, ...(isOData ? ['$top', '$skip'] : []), ...namesAround(first.page.numbers.keys())];
  const paging = await findPaging(view, hints, sizes.length === 1 ? sizes[0] : undefined);

  let [total] = totalPlaces(view.tallies);
  let constants = first.address.method === 'GET' ? first.address.query : {};
  if (total === undefined && isOData && view.mayAsk()) {
    const counted = await view.ask({ $count: 'true' });
    if (counted.kind === 'page' && view.tallies.at(-1)!.numbers.has('@odata.count')) {
      total = '@odata.count';
      constants = { ...constants, $count: 'true' };
    }
  }
  const count = total === undefined ? undefined : view.tallies.findLast(({ numbers }) => numbers.has(total))?.numbers.get(total);
  const cap = paging.size && !paging.isSizeCut && view.mayAsk() ? await findCap(view, paging.size.name, count) : undefined;
  const address = first.address.method === 'GET' ? { ...first.address, query: constants } : first.address;
  const draft = draftOf({ list, address, view, paging, total, cap });
  if (!draft) return nothingFound(probing, { address, view, paging });

  const whole = cap && !cap.isCap && cap.seen < cap.asked ? cap.seen : undefined;
  const { faults, endpoint: accepted } = endpointOf(list.name, draft.entry);
  // A path without the company's id is refused, but the list can still be rehearsed.
  const endpoint = accepted ?? endpointOf(list.name, { ...draft.entry, path: '/{company_id}' }).endpoint;
  const rehearsal = endpoint
    ? await rehearse(probing, address, withPages(endpoint, draft, count ?? whole), FOR_ETAG)
    : NO_REHEARSAL;
  const etag = await tryEtag(probing, view, paging);
  const seen = { view, paging, total, count, cap, draft, rehearsal, etag, address };
  const findings = [...findingsOf(seen), ...agreement(list.known, endpoint, rehearsal)];
  const refusals = faults.map(({ where, problem }) => `A catalogue with this entry is refused: ${where} ${problem}.`);
  const doubts = [...refusals, ...draft.guesses];
  const isConfirmed = doubts.length === 0 && wasProved(rehearsal) && view.order !== 'other';
  return {
    outcome: isConfirmed ? 'confirmed' : 'unconfirmed',
    findings,
    lookUp: [...doubts, ...lookUpFor(seen)],
    entry: entryText(
      list.name,
      asSeen(draft.entry, view.order, etag),
      commentsOf(draft, findings, doubts, probing.sent.length, isConfirmed),
    ),
    samples: list.withSamples ? samplesOf(rehearsal, list.known?.privacy) : [],
    requests: probing.sent,
  };
}

function wasProved({ failure, rejected, pages, doubted, hasEnded, records, total }: Rehearsal): boolean {
  const isShort = hasEnded && total !== undefined && records !== total;
  return failure === undefined && rejected === 0 && pages > 0 && doubted === undefined && !isShort;
}

function asSeen(entry: EntryDraft, order: Order, { isFalse }: TriedEtag): EntryDraft {
  return { ...entry, ...(order === 'other' && { order: 'unstable' as const }), ...(isFalse && { etag: 'ignore' as const }) };
}

/** The samples as the mirror would keep them. The privacy rules apply to the whole record before a long one is cut. */
function samplesOf({ samples }: Rehearsal, privacy: Privacy | undefined): readonly string[] {
  return samples
    .map((text) => (privacy ? redactRecord(text, privacy) : text))
    .map((text) => (text.length > LONGEST_SAMPLE ? `${text.slice(0, LONGEST_SAMPLE).toWellFormed()}…` : text));
}

/** The list with short pages, so that a few of them show their linkage. */
function withPages(endpoint: Endpoint, { largest, isSizeRead }: Draft, total: number | undefined): Endpoint {
  const wanted = total === undefined ? 20 : Math.ceil(total / 3) + 1;
  const size = isSizeRead ? Math.max(2, Math.min(wanted, largest, 200)) : endpoint.pager.size;
  return { ...endpoint, pager: { ...endpoint.pager, size } };
}

function commentsOf(
  { entry }: Draft,
  findings: readonly Finding[],
  doubts: readonly string[],
  requests: number,
  isConfirmed: boolean,
): EntryComments {
  const says = (...about: Finding['about'][]) => findings.filter((each) => about.includes(each.about)).map((each) => each.says);
  const head = `${isConfirmed ? 'Found and rehearsed' : 'Found, but not confirmed,'} by muster try with ${requests} requests.`;
  const around = says('envelope', 'total');
  return {
    head: [head, ...doubts, ...says('proof')],
    pager: says('paging', 'cap'),
    ...(entry.envelope === undefined ? { fields: around } : { envelope: around }),
    id: says('ids'),
    order: says('order'),
    etag: says('etag'),
  };
}
