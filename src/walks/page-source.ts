import type { Endpoint } from '../catalogue/endpoint.js';
import type { ApiClient } from '../http/api-client.js';
import type { TokenSource } from '../http/token-source.js';
import type { Pager } from '../pagers/pager.js';
import { childPage } from './child-page.js';
import type { Comparison } from './comparison.js';
import type { FetchPage } from './page-window.js';

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
  const { method, resource, id } = endpoint;
  return ({ pager, parent, ignoreTotals, comparison }) => {
    const path = endpoint.path.replace('{company_id}', companyId).replace('{id}', () => encodeURIComponent(parent ?? ''));
    const format = { resource, id, pager, ignoreTotals };
    return async (input, signal) => {
      // An answer says something only of the address that gave it.
      const request = JSON.stringify([api.baseUrl, input]);
      const current = comparison();
      const query = input.query && { ...endpoint.query, ...input.query };
      const body = input.body && { ...endpoint.body, ...input.body };
      const ask = (ifNoneMatch?: string) =>
        api.request({
          method,
          path,
          query: query ?? (input.link === undefined ? endpoint.query : undefined),
          body,
          link: input.link,
          tokens,
          signal,
          ifNoneMatch,
        });
      let response = await ask(current.ifNoneMatch(request));
      if (response.status === 304) {
        const page = current.notModified(request, response.headers['etag']);
        if (page) return { read: async () => page };
        response = await ask();
      }
      const { bytes, headers, url } = response;
      return {
        async read(idField) {
          const page = await current.read(request, { bytes, headers, url }, format, idField);
          return parent === undefined ? page : childPage(parent, page);
        },
      };
    };
  };
}
