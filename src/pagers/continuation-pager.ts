import type { PagerSpec } from '../catalogue/endpoint.js';
import { MusterError } from '../core/errors.js';
import type { Advance, Page, PageInput, Pager, PassMemory } from './pager.js';
import { MAX_BARREN_PAGES, MAX_REQUESTS_WITHOUT_TOTAL, passLimitExceeded } from './pass-limits.js';

export type ContinuationState = {
  /** Token of the page to ask for; null asks for the first page. */
  readonly token: string | null;
  /** Requests of this pass that were answered so far. */
  readonly requests: number;
  /** Pages in a row that brought no new record. */
  readonly barren: number;
};

type ContinuationSpec = Extract<PagerSpec, { style: 'continuation' }>;

/**
 * Pages by continuation token: each page names the next one.
 *
 *     -> { pageSize: 2 }                              <- { hasNextPage: true,  nextPageToken: "t1", data: [A, B] }
 *     -> { pageSize: 2, continuationToken: "t1" }     <- { hasNextPage: true,  nextPageToken: "t2", data: [] }
 *     -> { pageSize: 2, continuationToken: "t2" }     <- { hasNextPage: false, nextPageToken: null, data: [C] }    done
 *
 * Only the token decides: an empty page with a token goes on. A token that this pass has followed before would lead in a circle.
 */
export class ContinuationPager implements Pager<ContinuationState> {
  readonly #resource: string;
  readonly #spec: ContinuationSpec;

  constructor(resource: string, spec: ContinuationSpec) {
    this.#resource = resource;
    this.#spec = spec;
  }

  first(): ContinuationState {
    return { token: null, requests: 0, barren: 0 };
  }

  request({ token }: ContinuationState): PageInput {
    const { sizeName, tokenName, size } = this.#spec;
    const tokenPart = token === null ? {} : { [tokenName]: token };
    return this.#spec.in === 'query'
      ? { query: { [sizeName]: String(size), ...tokenPart } }
      : { body: { [sizeName]: size, ...tokenPart } };
  }

  next(state: ContinuationState, page: Page, memory: PassMemory): Advance<ContinuationState> {
    const token = page.nextToken;
    if (token === undefined) return { kind: 'done' };
    const requests = state.requests + 1;
    if (token === state.token || memory.hasToken(token)) {
      throw new MusterError(
        'page_token_loop',
        `The list ${this.#resource} gave a page token that led to an earlier page of the same pass (request ${requests}). ` +
          'The walk starts anew; if this repeats, check tokenName of this list in the catalogue.',
        { details: { resource: this.#resource, requests } },
      );
    }
    if (requests >= MAX_REQUESTS_WITHOUT_TOTAL) throw passLimitExceeded(this.#resource, requests, 'every page named another');
    const barren = memory.hasAll(page.keys) ? state.barren + 1 : 0;
    if (barren > MAX_BARREN_PAGES)
      throw passLimitExceeded(this.#resource, requests, `${barren} pages in a row brought nothing new`);
    return { kind: 'next', state: { token, requests, barren } };
  }

  /** A token is known only once the page before it has come. */
  ahead(): readonly PageInput[] {
    return [];
  }
}
