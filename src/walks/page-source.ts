import { type Endpoint, pageRequest } from '../catalogue/endpoint.js';
import { inTurns } from '../core/turns.js';
import type { ApiClient } from '../http/api-client.js';
import type { Reservation } from '../http/response-memory.js';
import type { TokenSource } from '../http/token-source.js';
import type { PageSpan } from '../observability/tracing.js';
import { membersRead } from '../pagers/id-reader.js';
import type { PageInput, Pager } from '../pagers/pager.js';
import type { PageFormat, PageResponse } from '../pagers/read-page.js';
import { redactResponse } from '../privacy/redact.js';
import type { Privacy } from '../privacy/rules.js';
import { childPage } from './child-page.js';
import type { Comparison } from './comparison.js';
import type { ReceivedPage } from './received-page.js';

export interface PageSourceDependencies {
  readonly api: Pick<ApiClient, 'request' | 'baseUrl'>;
  readonly companyId: string;
  readonly tokens: TokenSource;
}

/** The parts that all requests of one pass share. */
export interface PassRequest {
  readonly pager: Pager;
  /** The record of the parent list whose id replaces `{id}` in the path. */
  readonly parent?: string;
  /** Read the records and leave the totals around them unread. */
  readonly ignoreTotals: boolean;
  /** Gives the present comparison, which decides which records need none. */
  readonly comparison: () => Comparison;
}

/** A response that waits to be read: it takes the memory of its bytes, and not that of its records. */
export interface FetchedPage {
  readonly request: string;
  readonly response: PageResponse;
  /** See ReceivedPage. */
  readonly matched: readonly string[] | undefined;
  /** The page, where the service says that it is as it was (status 304). */
  readonly notModified?: ReceivedPage;
}

/** The pages of one pass. */
export interface PageSource {
  /** Asks the service for a page, for which this memory is reserved. Throws MemoryShort where it proves too little. */
  fetch(input: PageInput, signal: AbortSignal, memory: Reservation, span?: PageSpan): Promise<FetchedPage>;
  /** Reads a page once its turn has come. `idField`: the record member that is the id, once a page has shown it. Throws as readPage does. */
  read(fetched: FetchedPage, idField: string | undefined): Promise<ReceivedPage>;
}

/** Asks the service for the pages of a list. */
export function pageSource(
  { api, companyId, tokens }: PageSourceDependencies,
  endpoint: Endpoint,
): (pass: PassRequest) => PageSource {
  const { method, resource, id, privacy } = endpoint;
  return ({ pager, parent, ignoreTotals, comparison }) => {
    const format = { resource, id, pager, ignoreTotals };
    return {
      async fetch(input, signal, memory, span) {
        // The address is a part: a response says nothing of another one.
        const request = JSON.stringify([api.baseUrl, input]);
        const current = comparison();
        const mayBeWitness = method === 'GET' && parent === undefined && input.link === undefined;
        const onRetry = span && (() => span.retried());
        const requested = pageRequest(endpoint, companyId, input, parent);
        const asked = { ...requested, tokens, signal, memory, mayBeWitness, resource, onRetry };
        const ask = (ifNoneMatch?: string) => api.request({ ...asked, ifNoneMatch });
        let received = await ask(current.ifNoneMatch(request));
        span?.received(received);
        if (received.status === 304) {
          const page = current.notModified(request, received.headers['etag']);
          if (page) return { request, response: received, matched: page.answer?.matched, notModified: page };
          received = await ask();
          span?.received(received);
        }
        const { headers, url, status } = received;
        const { bytes, scanned, matched } = await redacted(received.bytes, format, privacy, memory);
        const response = { bytes, headers, url, isNoContent: status === 204, scanned, fit: memory };
        return { request, response, matched };
      },
      async read({ request, response, matched, notModified }, idField) {
        const read = notModified ?? (await comparison().read(request, response, format, idField));
        const page = parent === undefined ? read : await inTurns(childPage(parent, read));
        // Kept with the response, too, whose 304 will confirm it.
        return matched ? { ...page, matched, answer: page.answer && { ...page.answer, matched } } : page;
      },
    };
  };
}

/** Applies the privacy rules. After this no code sees what the service sent, but only what the rules left of it. */
async function redacted(
  bytes: Buffer,
  { id, pager }: PageFormat,
  privacy: Privacy | undefined,
  memory: Reservation,
): Promise<Pick<PageResponse, 'bytes' | 'scanned'> & Pick<FetchedPage, 'matched'>> {
  if (!privacy) return { bytes, matched: undefined };
  const { matched, ...response } = await inTurns(redactResponse(bytes, pager.dataPath, membersRead(id), privacy, memory));
  memory.rewrite(response.bytes);
  return { ...response, matched: [...matched] };
}
