import { isMusterError } from '../core/errors.js';
import type { ApiClient, ApiResponse } from '../http/api-client.js';
import type { Requester } from '../http/budget/request-budget.js';
import { ServiceError } from '../http/service-error.js';
import type { TokenSource } from '../http/token-source.js';
import type { PageInput } from '../pagers/pager.js';
import { KNOWN_NAMES } from './parameter-names.js';
import { type SeenPage, seePage } from './seen-page.js';

/** Requests that one look at a list may send, repetitions after a failure included. */
export const MOST_REQUESTS = 30;

/** The list that is looked at. */
export interface ListAddress {
  readonly method: 'GET' | 'POST';
  /** Path on {base_url}, the company's id filled in. */
  readonly path: string;
  /** Constants that every request carries. */
  readonly query: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A request that was sent, as the report shows it. */
export interface SentRequest {
  /** Counts from 1. */
  readonly number: number;
  /** The method and the parameters; values that a service has made are cut out. */
  readonly asked: string;
  /** HTTP status; null where no answer came. */
  readonly status: number | null;
  readonly saw: string;
}

/** The outcome of a request that asks for a page. */
export type Outcome =
  | { readonly kind: 'page'; readonly page: SeenPage; readonly request: number }
  | {
      readonly kind: 'no-list';
      readonly problem: string;
      readonly isTooLarge?: true;
      readonly status: number;
      readonly request: number;
    }
  | { readonly kind: 'refused'; readonly error: ServiceError; readonly status: number | null; readonly request: number };

const SIZES = new Set(KNOWN_NAMES.size);

/** All requests of the look are spent. */
export class RequestsSpent extends Error {}

export interface ProbingParts {
  readonly api: Pick<ApiClient, 'request'>;
  readonly tokens: TokenSource;
  readonly requester: Requester;
  readonly signal: AbortSignal;
}

/**
 * Asks a list for pages, at most thirty times. Each attempt asks the token source for its token first, and is counted there. A 401 says something of the
 * list alone: it never ends the company's authorization, and one renewal of the token is enough.
 */
export class Probing {
  readonly sent: SentRequest[] = [];
  readonly #parts: ProbingParts;
  readonly #tokens: TokenSource;
  #count = 0;

  constructor(parts: ProbingParts) {
    this.#parts = parts;
    let hasRenewed = false;
    this.#tokens = {
      get: () => {
        if (this.#count >= MOST_REQUESTS) return Promise.reject(new RequestsSpent('all requests are spent'));
        this.#count += 1;
        return parts.tokens.get();
      },
      renew: async (stale) => {
        if (this.#count >= MOST_REQUESTS) throw new RequestsSpent('all requests are spent');
        this.#count += 1;
        if (hasRenewed) return stale;
        hasRenewed = true;
        return parts.tokens.renew(stale);
      },
      refused: async () => {},
    };
  }

  /** Requests that are left. */
  get left(): number {
    return MOST_REQUESTS - this.#count;
  }

  /** Asks for a page and looks at what it is. `isSecret`: its texts come from records or tokens. Throws RequestsSpent, and what is no answer of the service to this request. */
  async ask(
    address: ListAddress,
    input: PageInput,
    { dataPath, isSecret = false }: { readonly dataPath?: readonly string[]; readonly isSecret?: boolean } = {},
  ): Promise<Outcome> {
    const shownInput = isSecret ? withoutTexts(input) : input;
    const request = this.#count + 1;
    try {
      const response = await this.#send(address, input);
      const seen = seePage(response, dataPath);
      this.#note(request, address, shownInput, response.status, 'problem' in seen ? seen.problem : describePage(seen));
      return 'problem' in seen
        ? { kind: 'no-list', ...seen, status: response.status, request }
        : { kind: 'page', page: seen, request };
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const status = typeof error.details['status'] === 'number' ? error.details['status'] : null;
      this.#note(request, address, shownInput, status, error.serviceSays ?? `no page (${error.code})`);
      return { kind: 'refused', error, status, request };
    }
  }

  /** The answer as it came, for readers of their own; `describe` says what was seen. Throws what `ApiClient.request` throws, and RequestsSpent. */
  async fetch(
    address: ListAddress,
    input: PageInput,
    describe: (response: ApiResponse) => string,
    { ifNoneMatch, isSecret = false }: { readonly ifNoneMatch?: string; readonly isSecret?: boolean } = {},
  ): Promise<{ readonly response: ApiResponse; readonly request: number }> {
    const request = this.#count + 1;
    const shownInput = isSecret ? withoutTexts(input) : input;
    try {
      const response = await this.#send(address, input, ifNoneMatch);
      this.#note(request, address, shownInput, response.status, describe(response));
      return { response, request };
    } catch (error) {
      if (isMusterError(error)) {
        const status = typeof error.details['status'] === 'number' ? error.details['status'] : null;
        this.#note(request, address, shownInput, status, `no page (${error.code})`);
      }
      throw error;
    }
  }

  #send({ method, path, query, body }: ListAddress, input: PageInput, ifNoneMatch?: string): Promise<ApiResponse> {
    const { api, requester, signal } = this.#parts;
    return api.request({
      method,
      path,
      query: input.link === undefined ? { ...query, ...input.query } : input.query,
      ...(method === 'POST' && { body: { ...body, ...input.body } }),
      link: input.link,
      ifNoneMatch,
      tokens: this.#tokens,
      requester,
      signal,
    });
  }

  #note(number: number, { method, path }: ListAddress, { query, body, link }: PageInput, status: number | null, saw: string) {
    const place = `…/${path.split('/').at(-1)}`;
    const parameters = Object.entries({ ...query, ...body }).map(([name, value]) => `${name}=${shown(value)}`);
    const asked = link === undefined ? [place, ...parameters] : ['the link of the page before'];
    const attempts = this.#count - number;
    this.sent.push({
      number,
      asked: `${method} ${asked.join(' ')}`,
      status,
      saw: attempts > 0 ? `${saw}, after ${attempts + 1} attempts` : saw,
    });
  }
}

/** Numbers and words of ours are shown. Anything longer may be a page token, or speak of somebody. */
function shown(value: unknown): string {
  return /^(\d{1,6}|true|false)$/.test(String(value)) ? String(value) : '…';
}

/** The input with nothing in the place of values that the service has made. */
function withoutTexts({ query, body, link }: PageInput): PageInput {
  const hidden = (all: Readonly<Record<string, unknown>> | undefined) =>
    all && Object.fromEntries(Object.keys(all).map((name) => [name, SIZES.has(name) ? String(all[name]) : '']));
  return { ...(query && { query: hidden(query)! }), ...(body && { body: hidden(body)! }), ...(link !== undefined && { link }) };
}

function describePage({ records }: SeenPage): string {
  return `${records.length} ${records.length === 1 ? 'record' : 'records'}`;
}
