import type { Endpoint } from '../catalogue/endpoint.js';
import { freeBuffers } from '../core/free-buffers.js';
import { inTurns } from '../core/turns.js';
import type { ApiClient } from '../http/api-client.js';
import type { TokenSource } from '../http/token-source.js';
import { membersRead } from '../pagers/id-reader.js';
import type { FitMade } from '../pagers/json-scanner.js';
import type { Pager } from '../pagers/pager.js';
import type { PageFormat } from '../pagers/read-page.js';
import { redactResponse } from '../privacy/redact.js';
import type { Privacy } from '../privacy/rules.js';
import { childPage } from './child-page.js';
import type { Comparison } from './comparison.js';
import type { FetchPage } from './page-window.js';
import type { ReceivedPage } from './received-page.js';

export interface PageSourceDependencies {
  readonly api: Pick<ApiClient, 'request' | 'baseUrl'>;
  readonly companyId: string;
  readonly tokens: TokenSource;
}

/** What the requests of one pass have in common. */
export interface PassRequest {
  readonly pager: Pager;
  /** Record of the parent list that stands for `{id}` in the path. */
  readonly parent?: string;
  /** Read the records and leave the totals around them unread. */
  readonly ignoreTotals: boolean;
  /** What decides, at each request, which records need no comparison. */
  readonly comparison: () => Comparison;
}

/** Asks the service for the pages of a list. */
export function pageSource(
  { api, companyId, tokens }: PageSourceDependencies,
  endpoint: Endpoint,
): (pass: PassRequest) => FetchPage {
  const { method, resource, id, privacy } = endpoint;
  return ({ pager, parent, ignoreTotals, comparison }) => {
    const path = endpoint.path.replace('{company_id}', companyId).replace('{id}', () => encodeURIComponent(parent ?? ''));
    const format = { resource, id, pager, ignoreTotals };
    return async (input, signal, memory) => {
      // An answer says something only of the address that gave it.
      const request = JSON.stringify([api.baseUrl, input]);
      const current = comparison();
      const query = input.link === undefined ? { ...endpoint.query, ...input.query } : input.query;
      const body = (endpoint.body || input.body) && { ...endpoint.body, ...input.body };
      const ask = (ifNoneMatch?: string) =>
        api.request({
          method,
          path,
          query,
          body,
          link: input.link,
          tokens,
          signal,
          memory,
          ifNoneMatch,
          mayBeWitness: method === 'GET' && parent === undefined && input.link === undefined,
        });
      let response = await ask(current.ifNoneMatch(request));
      if (response.status === 304) {
        const page = current.notModified(request, response.headers['etag']);
        if (page) return { read: async () => withMatches(page, page.answer?.matched), drop: () => {}, bytes: 0 };
        response = await ask();
      }
      const { headers, url } = response;
      const isNoContent = response.status === 204;
      const fit: FitMade = (heap, growth) => memory.fitMade(heap, growth);
      const { bytes, matched, scanned } = privacy
        ? await treated(response.bytes, format, privacy, fit)
        : { bytes: response.bytes, matched: undefined, scanned: undefined };
      return {
        async read(idField) {
          const page = await current.read(request, { bytes, headers, url, isNoContent, scanned, fit }, format, idField);
          return withMatches(parent === undefined ? page : await inTurns(childPage(parent, page)), matched);
        },
        drop: () => freeBuffers([bytes]),
        bytes: bytes.length,
      };
    };
  };
}

/** From here on nobody sees what the service sent, but what the rules left of it. */
async function treated(received: Buffer, { id, pager }: PageFormat, privacy: Privacy, fit: FitMade) {
  const { matched, ...answer } = await inTurns(redactResponse(received, pager.dataPath, membersRead(id), privacy, fit));
  if (answer.bytes !== received) freeBuffers([received]);
  return { ...answer, matched: [...matched] };
}

/** Noted with the page and with its answer, by which a 304 will confirm it. */
function withMatches(page: ReceivedPage, matched: readonly string[] | undefined): ReceivedPage {
  return matched ? { ...page, matched, answer: page.answer && { ...page.answer, matched } } : page;
}
