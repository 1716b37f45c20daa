import { isDeepStrictEqual } from 'node:util';
import type { Endpoint } from '../catalogue/endpoint.js';
import { isMusterError, MusterError } from '../core/errors.js';
import { inTurns } from '../core/turns.js';
import type { ApiResponse } from '../http/api-client.js';
import type { Doubted } from '../pagers/doubt.js';
import type { JsonObject, Linkage } from '../pagers/pager.js';
import { type ReadPage, readPage } from '../pagers/read-page.js';
import { pagerFor } from '../pagers/registry.js';
import { type ListAddress, type Probing, RequestsSpent } from './probing.js';
import { MOST_BYTES } from './seen-page.js';

/** The findings of a short walk with the entry. */
export interface Rehearsal {
  readonly requests: readonly number[];
  readonly pages: number;
  readonly records: number;
  /** The list's own count of its records, from the newest page. */
  readonly total: number | undefined;
  readonly hasEnded: boolean;
  readonly linkage: Linkage;
  /** Records that came on two pages. */
  readonly repeats: number;
  readonly rejected: number;
  readonly idField: ReadPage['idField'];
  readonly doubted?: Doubted | undefined;
  /** The message of the error that ended the walk. */
  readonly failure?: string | undefined;
  /** Texts of a few records as sent. */
  readonly samples: readonly string[];
}

export const NO_REHEARSAL: Rehearsal = {
  requests: [],
  pages: 0,
  records: 0,
  total: undefined,
  hasEnded: false,
  linkage: 'none',
  repeats: 0,
  rejected: 0,
  idField: undefined,
  samples: [],
};

const MOST_PAGES = 7;
const MOST_SAMPLES = 3;
/** Bytes of heap that the records of a page may take. */
const MOST_HEAP = 16 * MOST_BYTES;

/** Walks the first pages of a list with the pager of its entry, as a sync would, and stores nothing. `keep`: requests to leave over. */
export async function rehearse(probing: Probing, address: ListAddress, endpoint: Endpoint, keep: number): Promise<Rehearsal> {
  const pager = pagerFor(endpoint);
  let state: JsonObject = pager.first();
  const seen = new Set<string>();
  const tokens = new Set<string | number>();
  let firstPage: string | undefined;
  let lastIds: readonly string[] = [];
  const found: { -readonly [Name in keyof Rehearsal]: Rehearsal[Name] } = { ...NO_REHEARSAL };
  while (found.requests.length < MOST_PAGES && probing.left > keep && !found.hasEnded) {
    // The request for a page of a chain holds a token or an id.
    const isSecret = pager.linkage(state) === 'token-chain';
    try {
      const described = () => 'a page of the rehearsal';
      const { response, request } = await probing.fetch(address, pager.request(state), described, { isSecret });
      const page = await readResponse(response, endpoint, found.idField);
      const ids = page.ids.join('\n');
      const repeats = page.ids.filter((id) => seen.has(id)).length;
      found.requests = found.requests.concat(request);
      found.idField ??= page.idField;
      const advance = pager.next(state, page, {
        repeats,
        isFirstPage: ids === firstPage,
        endsAsBefore: isDeepStrictEqual(page.ids.slice(-lastIds.length), lastIds),
        hasToken: (token) => tokens.has(token),
      });
      if (advance.kind !== 'again') {
        if (page.count > 0) [firstPage, lastIds] = [firstPage ?? ids, page.ids];
        if (page.nextToken !== undefined) tokens.add(page.nextToken);
        for (const id of page.ids) seen.add(id);
        found.pages += 1;
        found.records = seen.size;
        found.total = page.total ?? found.total;
        found.repeats += repeats;
        found.rejected += page.rejected.length;
        found.samples = found.samples.concat(textsOf(page)).slice(0, MOST_SAMPLES);
      }
      if ('state' in advance) state = advance.state;
      found.linkage = pager.linkage(state);
      if (advance.kind === 'done') [found.hasEnded, found.doubted] = [true, advance.doubted];
    } catch (error) {
      if (error instanceof RequestsSpent) break;
      const isFinding = isMusterError(error) && error.code !== 'stopping';
      if (!isFinding) throw error;
      const meaning = pager.meaningOf(error, state);
      found.requests = found.requests.concat(probing.sent.at(-1)?.number ?? 0);
      if (meaning?.kind === 'again') ({ state } = meaning);
      else if (meaning?.kind === 'ended') [found.hasEnded, found.doubted] = [true, meaning.doubted];
      else return { ...found, failure: error.message };
    }
  }
  return found;
}

function textsOf({ records }: ReadPage): string[] {
  return records.slice(0, MOST_SAMPLES).map(({ source, start, end }) => source.toString('utf8', start, end));
}

function readResponse({ bytes, headers, url }: ApiResponse, endpoint: Endpoint, idField: ReadPage['idField']): Promise<ReadPage> {
  const format = { resource: endpoint.resource, id: endpoint.id, pager: pagerFor(endpoint), ignoreTotals: false };
  const fit = {
    fitMade: (heap: number) => {
      if (heap > MOST_HEAP)
        throw new MusterError(
          'response_too_large',
          `A page of the list ${endpoint.resource} is too dense to be examined: it has too many records.`,
        );
    },
  };
  return inTurns(readPage({ bytes, headers, url, fit }, format, idField));
}
