import type { Endpoint } from '../catalogue/endpoint.js';
import type { ApiClient } from '../http/api-client.js';
import type { TokenSource } from '../http/token-source.js';
import { type KeptAnswer, readPage } from '../pagers/envelope.js';
import { pageOf, readAgainst } from '../pagers/known-page.js';
import { childPage } from './child-page.js';
import type { FetchPage } from './page-window.js';
import type { PassRequest } from './walk-pass.js';

export interface PageSourceParts {
  readonly api: Pick<ApiClient, 'request' | 'baseUrl'>;
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
  return ({ parent, ignoreTotals, known }) => {
    const path = endpoint.path.replace('{company_id}', companyId).replace('{id}', () => encodeURIComponent(parent ?? ''));
    // What 304 means for other methods, no specification says. Child lists are too short to be worth it.
    const isUsed = method === 'GET' && endpoint.etag !== 'ignore' && parent === undefined;
    const usable = isUsed ? ETAGS[endpoint.etag] : undefined;
    return async (input, signal) => {
      // An ETag says something only of the address that gave it.
      const request = JSON.stringify([api.baseUrl, input]);
      const kept = ignoreTotals ? undefined : known?.()?.answerTo(request);
      const before = kept && usable?.test(kept.answer.etag) ? kept : undefined;
      const ask = (ifNoneMatch?: string) => api.request({ method, path, ...input, tokens, signal, ifNoneMatch });
      let response = await ask(before?.answer.etag);
      if (response.status === 304) {
        if (isEtagOf(before!.answer, response.headers.etag)) return { read: async () => pageOf(before!) };
        response = await ask();
      }
      const { bytes, headers } = response;
      const { etag } = headers;
      const isKept = etag !== undefined && usable?.test(etag);
      return {
        async read(idField) {
          const whole = () => readPage(bytes, endpoint, idField, ignoreTotals);
          if (parent !== undefined) return childPage(parent, whole());
          const reference = known?.();
          const page = reference ? await readAgainst(reference, bytes, endpoint, idField, ignoreTotals) : whole();
          const answer = isKept ? { request, etag, total: page.total, nextToken: page.nextToken } : undefined;
          return { answer, ...page };
        },
      };
    };
  };
}

/** A 304 with another ETag speaks of another page (RFC 9111, 4.3.4). */
function isEtagOf({ etag }: KeptAnswer, confirmed = etag): boolean {
  return confirmed.replace(/^W\//, '') === etag.replace(/^W\//, '');
}
