import type { Endpoint } from '../catalogue/endpoint.js';
import type { ApiClient } from '../http/api-client.js';
import type { TokenSource } from '../http/token-source.js';
import { type KeptAnswer, type ReceivedPage, readPage } from '../pagers/envelope.js';
import { pageOf, readAgainst } from '../pagers/known-page.js';
import { childPage } from './child-page.js';
import type { FetchPage } from './page-window.js';
import type { PassRequest } from './walk-pass.js';

export interface PageSourceParts {
  readonly api: Pick<ApiClient, 'request' | 'address'>;
  readonly companyId: string;
  readonly tokens: TokenSource;
}

/** ETags that can be sent back as they came (RFC 9110, 8.8.3), short enough to be kept with every page. */
const ETAGS = {
  strong: /^"[\x21\x23-\x7e]{0,500}"$/,
  weak: /^(?:W\/)?"[\x21\x23-\x7e]{0,500}"$/,
};

/**
 * Asks the service for the pages of a list. A page that the walk just before received with an ETag is asked for with it; when it is
 * as it was, its records are not sent again.
 */
export function pageSource({ api, companyId, tokens }: PageSourceParts, endpoint: Endpoint): (pass: PassRequest) => FetchPage {
  const { method } = endpoint;
  // What 304 means for other methods, no specification says.
  const usable = method === 'GET' && endpoint.etag !== 'ignore' ? ETAGS[endpoint.etag] : undefined;
  return ({ parent, ignoreTotals, known }) => {
    const path = endpoint.path.replace('{company_id}', companyId).replace('{id}', () => encodeURIComponent(parent ?? ''));
    return async (input, idField, signal) => {
      // An ETag says something only of the address that gave it.
      const request = JSON.stringify([api.address, input]);
      const kept = ignoreTotals ? undefined : known?.()?.answerTo(request);
      const before = kept && usable?.test(kept.answer.etag) ? kept : undefined;
      const ifNoneMatch = before?.answer.etag;
      const { status, headers, bytes } = await api.request({ method, path, ...input, tokens, signal, ifNoneMatch });
      if (status === 304) return pageOf(before!);
      const reference = known?.();
      if (reference) return withAnswer(readAgainst(reference, bytes, endpoint, idField, ignoreTotals));
      const page = readPage(bytes, endpoint, idField, ignoreTotals);
      return parent === undefined ? withAnswer(page) : childPage(parent, page);

      function withAnswer(received: ReceivedPage): ReceivedPage {
        const { etag } = headers;
        if (etag === undefined || !usable?.test(etag)) return received;
        const { total, nextToken } = received;
        const answer: KeptAnswer = {
          request,
          etag,
          ...(total !== undefined && { total }),
          ...(nextToken !== undefined && { nextToken }),
        };
        return { ...received, answer };
      }
    };
  };
}
