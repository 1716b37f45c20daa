import { isMusterError, type MusterError } from '../core/errors.js';
import type { ApiClient, ApiResponse } from '../http/api-client.js';
import type { Requester } from '../http/budget/request-budget.js';
import { ServiceError } from '../http/service-error.js';
import type { TokenSource } from '../http/token-source.js';
import type { PageInput } from '../pagers/pager.js';
import { KNOWN_NAMES } from './parameter-names.js';
import { type SeenPage, seePage } from './seen-page.js';

/** The most requests of one look at a list, including retries. */
export const MOST_REQUESTS = 30;

export interface ListAddress {
  readonly method: 'GET' | 'POST';
  /** Path on {base_url}, with the company's id filled in. */
  readonly path: string;
  /** Constants that every request carries. */
  readonly query: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A request as the report shows it. */
export interface SentRequest {
  readonly number: number;
  /** The method and the parameters, without values that the service has made. */
  readonly asked: string;
  /** HTTP status; null if no response came. */
  readonly status: number | null;
  readonly saw: string;
}

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
 * Requests pages of a list, at most thirty times. Each attempt gets its token from the token source first, which counts it. A 401 concerns
 * the list alone: it never ends the company's authorization, and one renewal of the token is enough.
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
      get: async () => {
        this.#countAttempt();
        return parts.tokens.get();
      },
      renew: async (stale) => {
        this.#countAttempt();
        if (hasRenewed) return stale;
        hasRenewed = true;
        return parts.tokens.renew(stale);
      },
      refused: async () => {},
    };
  }

  get left(): number {
    return MOST_REQUESTS - this.#count;
  }

  #countAttempt(): void {
    if (this.left <= 0) throw new RequestsSpent('all requests are spent');
    this.#count += 1;
  }

  /** Requests a page and examines it. `isSecret`: texts of the input come from records or tokens. Throws RequestsSpent, and errors other than ServiceError. */
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
      const { length } = 'problem' in seen ? [] : seen.records;
      const saw = 'problem' in seen ? seen.problem : `${length} ${length === 1 ? 'record' : 'records'}`;
      this.#record(request, address, shownInput, response.status, saw);
      return 'problem' in seen
        ? { kind: 'no-list', ...seen, status: response.status, request }
        : { kind: 'page', page: seen, request };
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const status = statusOf(error);
      this.#record(request, address, shownInput, status, error.serviceSays ?? `no page (${error.code})`);
      return { kind: 'refused', error, status, request };
    }
  }

  /** Requests a page for a caller that reads it itself; `describe` gives the report's words for it. Throws what `ApiClient.request` throws, and RequestsSpent. */
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
      this.#record(request, address, shownInput, response.status, describe(response));
      return { response, request };
    } catch (error) {
      if (isMusterError(error)) this.#record(request, address, shownInput, statusOf(error), `no page (${error.code})`);
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

  #record(number: number, { method, path }: ListAddress, { query, body, link }: PageInput, status: number | null, saw: string) {
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

function statusOf({ details }: MusterError): number | null {
  return typeof details['status'] === 'number' ? details['status'] : null;
}

/** Only short numbers and flags are shown: any other value may be a page token or personal data. */
function shown(value: unknown): string {
  return /^(\d{1,6}|true|false)$/.test(String(value)) ? String(value) : '…';
}

/** The input without values that the service has made. */
function withoutTexts({ query, body, link }: PageInput): PageInput {
  const hidden = (all: Readonly<Record<string, unknown>> | undefined) =>
    all && Object.fromEntries(Object.keys(all).map((name) => [name, SIZES.has(name) ? String(all[name]) : '']));
  return { ...(query && { query: hidden(query)! }), ...(body && { body: hidden(body)! }), ...(link !== undefined && { link }) };
}
