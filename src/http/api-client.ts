import type { Clock } from '../core/clock.js';
import { MusterError } from '../core/errors.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import type { Secret } from '../core/secret.js';
import type { Logger } from '../observability/logger.js';
import { registerSecret } from '../observability/secret-registry.js';
import { type Permit, type RequestBudget, type Requester, UNBOUNDED } from './budget/request-budget.js';
import { describeRequest, type HttpClient, type HttpResponse } from './http-client.js';
import type { Reservation } from './response-memory.js';
import { withRetries } from './retry-policy.js';
import { isWebPage, mayBeJson, notOfTheApi, recordUnread, statusError, tokenRefused } from './service-error.js';
import type { TokenSource } from './token-source.js';

export interface ApiRequest {
  readonly method: 'GET' | 'POST';
  /** Path on {base_url}, beginning with a slash. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** Path and query on the API's own origin, in the place of `path`: where an answer said that another one stands. `query` is added to it. */
  readonly link?: string | undefined;
  /** The ETag of an answer that is kept: 304 instead of 200 when it is still the answer. */
  readonly ifNoneMatch?: string | undefined;
  readonly tokens: TokenSource;
  /** A refusal is not asked for again, whoever it is of: others wait, and what is asked for matters less. */
  readonly takesRefusals?: true;
  readonly signal?: AbortSignal | undefined;
  /** Its path may be asked again, to tell whether a token that is refused here or there is refused everywhere: it names no person, and is kept. */
  readonly mayBeWitness?: boolean;
  /** Memory for the answer (HttpRequest). */
  readonly memory?: Reservation | undefined;
  /** For whom the request budget is asked; nobody in particular unless said. */
  readonly requester?: Requester | undefined;
}

/** 304 only where the request had `ifNoneMatch`; its body is empty, and so is that of 204. */
export type ApiResponse = HttpResponse & { readonly status: 200 | 203 | 204 | 206 | 304 };

/** Statuses of answers that are what was asked for. */
const ANSWERED = new Set([200, 203, 204, 206]);

export interface ApiClientParts {
  readonly http: HttpClient;
  readonly provider: Pick<ProviderSettings, 'baseUrl' | 'bases'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Asked before every attempt; none unless given. */
  readonly budget?: RequestBudget;
}

const NOBODY: Requester = { company: '', urgent: false };
/** A token that was in hand for longer may have been renewed, or have expired. */
const TOKEN_KEEPS_MS = 5_000;

/** A new token may take a moment to reach every machine of the service. */
const NEW_TOKEN_SPREADS_MS = 1_000;

/** A response, and the token that it is the answer to. */
interface Sent {
  readonly token: Secret;
  readonly response: HttpResponse;
}

/** Whether a token that was presented was taken. */
interface Judged {
  readonly token: Secret;
  readonly isTaken: boolean;
}

/** Reads of the API of one environment: authorized, repeated while that may help, each failure given its code. */
export class ApiClient {
  readonly #parts: ApiClientParts;
  readonly #recordHost: ApiClient;
  /** {base_url} without what stands before the host or behind the path, ending with one slash. */
  readonly #base: string;

  /** `recordHost`: where companies' own records stand, if that is another host of the API. */
  constructor(parts: ApiClientParts, recordHost?: ApiClient) {
    this.#parts = parts;
    this.#recordHost = recordHost ?? this;
    const { origin, pathname } = parts.provider.baseUrl;
    this.#base = `${origin}${pathname.replace(/\/*$/, '/')}`;
  }

  /** {base_url}. */
  get baseUrl(): string {
    return String(this.#parts.provider.baseUrl);
  }

  /** Reads of another host of the same API, by the same tokens and within the same budget. Throws `environment_not_configured`. */
  at(base: string | undefined): ApiClient {
    if (base === undefined) return this;
    const { provider } = this.#parts;
    const baseUrl = provider.bases?.[base];
    if (baseUrl) return new ApiClient({ ...this.#parts, provider: { ...provider, baseUrl } }, this);
    throw new MusterError(
      'environment_not_configured',
      `There is no further host ${base} of this API: set …_BASE_URL_${base.toUpperCase()}.`,
    );
  }

  /**
   * Throws ServiceError: `access_token_refused` where the company's own record, too, refuses a token that was just renewed (the token source was told),
   * `service_refused` (401 to this request alone, 403 and other 4xx, a redirect; the status in `details`), `service_throttled`, `service_error`, `service_timeout`,
   * `service_unreachable`, `response_too_large`, `malformed_response`; MemoryShort; and whatever `tokens` throws. Those that
   * are retryable after the last attempt.
   */
  request(outgoing: ApiRequest): Promise<ApiResponse> {
    const { clock, logger } = this.#parts;
    const url = this.#url(outgoing);
    const what = describeRequest({ method: outgoing.method, url });
    // Once a request, not once an attempt: a service that refuses every token must not cost five renewals a page.
    const renewal = { spent: false };
    return withRetries(() => this.#attempt(outgoing, url, what, renewal), {
      clock,
      signal: outgoing.signal,
      takesRefusals: outgoing.takesRefusals,
      onRetry: (error, delayMs) =>
        logger.debug({ error: error.code, status: error.details['status'], delayMs }, `${what} will be repeated`),
    });
  }

  async #attempt(outgoing: ApiRequest, url: URL, what: string, renewal: { spent: boolean }): Promise<ApiResponse> {
    const { tokens } = outgoing;
    let { token, response } = await this.#send(outgoing, url, await tokens.get());
    if (response.status === 401 && !renewal.spent) {
      renewal.spent = true;
      ({ token, response } = await this.#send(outgoing, url, await tokens.renew(token, 'refused-alone')));
    }
    if (response.status === 401) ({ token, response } = await this.#judge(outgoing, url, what, { token, response }));
    const isNotModified = response.status === 304 && outgoing.ifNoneMatch !== undefined;
    const isAnswered = ANSWERED.has(response.status);
    if (isAnswered && response.status !== 204 && !mayBeJson(response.bytes)) throw notOfTheApi(what, response);
    if (isAnswered || isNotModified) return response as ApiResponse;
    // An answer may repeat what it was sent.
    registerSecret(token.reveal());
    throw statusError(what, response, this.#parts.clock.now());
  }

  /**
   * A 401 again, though the token may be long renewed and expired since. The company's own record, or else the list that took a token last, tells whether this list
   * alone refuses it: then the 401 is the answer, or what the list answers to a newer token that they take. Throws `access_token_refused` where a token that was just
   * renewed is refused everywhere, twice in a row; the token source was told.
   */
  async #judge(outgoing: ApiRequest, url: URL, what: string, refused: Sent): Promise<Sent> {
    const { tokens, path, link } = outgoing;
    const { recordPath } = tokens;
    if (recordPath === undefined || (path === recordPath && link === undefined)) return refused;
    const host = this.#recordHost;
    const record = host.#url({ path: recordPath });
    let asked = await this.#askElsewhere(outgoing, record, refused.token);
    // A request that waited for the budget was sent with a newer token.
    const isSame = asked.token.reveal() === refused.token.reveal();
    tokens.evidence?.recordRefusedAlone(asked.isTaken && isSame ? asked.token : undefined);
    if (asked.isTaken) return isSame ? refused : this.#send(outgoing, url, asked.token);
    const renewed = await tokens.renew(asked.token, tokens.evidence?.isRefused ? 'new' : undefined);
    if (renewed.reveal() !== asked.token.reveal()) asked = await this.#askElsewhere(outgoing, record, renewed);
    if (!asked.isTaken) {
      await this.#parts.clock.sleep(NEW_TOKEN_SPREADS_MS, outgoing.signal);
      asked = await this.#askElsewhere(outgoing, record, asked.token);
    }
    if (asked.isTaken) return this.#send(outgoing, url, asked.token);
    await tokens.refused(asked.token);
    throw tokenRefused(what);
  }

  /** Whether the company's own record takes the token, or the list that took one last. Throws ServiceError where that cannot be told now. */
  async #askElsewhere(outgoing: ApiRequest, record: URL, presented: Secret): Promise<Judged> {
    const { evidence } = outgoing.tokens;
    const asked = await this.#ask(outgoing, record, presented);
    if (asked.isTaken) await evidence?.taken();
    const witness = asked.isTaken ? undefined : await evidence?.witness();
    if (witness === undefined || !this.#isOurs(witness)) return asked;
    const judged = await this.#ask(outgoing, new URL(witness), asked.token);
    if (judged.isTaken) await evidence?.keep(witness);
    return judged;
  }

  /** An address that was kept must be of the API still: the token goes there. */
  #isOurs(address: string): boolean {
    const host = this.#recordHost;
    const { baseUrl, bases = {} } = host.#parts.provider;
    return [baseUrl, ...Object.values(bases)].some(({ origin }) => address.startsWith(`${origin}/`));
  }

  async #ask({ tokens, requester, signal }: ApiRequest, url: URL, presented: Secret): Promise<Judged> {
    const request: ApiRequest = { method: 'GET', path: url.pathname, tokens, requester, signal };
    const { token, response } = await this.#send(request, url, presented);
    const { status } = response;
    if (status === 401 && !isWebPage(response)) return { token, isTaken: false };
    const cannotTell = status === 401 || status === 408 || status === 429 || status >= 500;
    if (cannotTell) throw recordUnread(describeRequest({ method: 'GET', url }), response, this.#parts.clock.now());
    return { token, isTaken: true };
  }

  /** Waits for the budget with the token in hand: whoever has to wait for a token keeps nobody else waiting. */
  async #send(outgoing: ApiRequest, url: URL, token: Secret): Promise<Sent> {
    const { requester = NOBODY, tokens, signal } = outgoing;
    const permit = await (this.#parts.budget ?? UNBOUNDED).admit(requester, signal);
    let newest = token;
    if (permit.waitedMs > TOKEN_KEEPS_MS)
      newest = await tokens.get().catch((error: unknown) => {
        permit.unused();
        throw error;
      });
    const response = await this.#exchange(outgoing, url, newest, permit);
    const isTaken = ANSWERED.has(response.status) || response.status === 304;
    if (isTaken) await tokens.evidence?.taken(outgoing.mayBeWitness ? `${url.origin}${url.pathname}` : undefined);
    return { token: newest, response };
  }

  async #exchange(
    { method, body, ifNoneMatch, signal, memory }: ApiRequest,
    url: URL,
    token: Secret,
    permit: Permit,
  ): Promise<HttpResponse> {
    try {
      const response = await this.#parts.http.send({
        method,
        url,
        signal,
        memory,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${token.reveal()}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          // The service itself is asked, not a cache on the way.
          ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch, 'cache-control': 'no-cache' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      permit.answered(response);
      return response;
    } catch (error) {
      permit.failed(error);
      throw error;
    }
  }

  /**
   * The path stands behind the base, a link behind the origin, and neither is resolved: no path of a catalogue and no link of an answer can
   * lead to another host with the token. Parsed once: each part that is set takes as long as the whole.
   */
  #url({ path, query, link }: Pick<ApiRequest, 'path' | 'query' | 'link'>): URL {
    const search = encodeQuery(query ?? {});
    if (link === undefined) return new URL(`${this.#base}${path.replace(/^\//, '')}${search && `?${search}`}`);
    const { origin } = this.#parts.provider.baseUrl;
    const mark = search && (link.includes('?') ? '&' : '?');
    const url = new URL(`${origin}${link}${mark}${search}`);
    if (!link.startsWith('/') || url.origin !== origin) throw new TypeError('a link that is no path on the API');
    return url;
  }
}

/** `$` stays as it is: the service documents `$take`, and not every server decodes names. */
export function encodeQuery(query: Readonly<Record<string, string>>): string {
  let text = '';
  for (const name in query) {
    const value = encodeURIComponent(query[name]!);
    text += `${text && '&'}${encodeURIComponent(name).replaceAll('%24', '$')}=${value}`;
  }
  return text;
}
