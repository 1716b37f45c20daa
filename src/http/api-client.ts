import type { Clock } from '../core/clock.js';
import { MusterError } from '../core/errors.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import type { Secret } from '../core/secret.js';
import type { Logger } from '../observability/logger.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { RequestCounts } from '../observability/work-metrics.js';
import { type Permit, type RequestBudget, type Requester, UNBOUNDED } from './budget/request-budget.js';
import { describeRequest, type HttpClient, type HttpResponse } from './http-client.js';
import { isPage, outcomeOf } from './request-outcome.js';
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
  /** Path and query of a link in a response, used instead of `path`; always on the API's own origin. `query` is added to it. */
  readonly link?: string | undefined;
  /** The ETag of a stored response: the service answers 304 if it is still current. */
  readonly ifNoneMatch?: string | undefined;
  readonly tokens: TokenSource;
  /** Do not retry a refusal: other requests wait, and this one matters less. */
  readonly takesRefusals?: true;
  readonly signal?: AbortSignal | undefined;
  /** The path may be stored and requested again, to find out whether a token is refused everywhere. It must not name a person. */
  readonly mayBeWitness?: boolean;
  /** Memory for the response (HttpRequest). */
  readonly memory?: Reservation | undefined;
  /** Called before each repetition. */
  readonly onRetry?: (() => void) | undefined;
  /** The list of which this is a page, for the metrics. */
  readonly resource?: string | undefined;
  /** On whose behalf the request budget is used; by default on behalf of no company. */
  readonly requester?: Requester | undefined;
}

/** 304 only where the request had `ifNoneMatch`; its body is empty, and so is that of 204. */
export type ApiResponse = HttpResponse & { readonly status: 200 | 203 | 204 | 206 | 304 };

/** Statuses of a successful response. */
const SUCCESS = new Set([200, 203, 204, 206]);

export interface ApiClientParts {
  readonly http: HttpClient;
  readonly provider: Pick<ProviderSettings, 'baseUrl' | 'bases'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Limits every attempt, if given. */
  readonly budget?: RequestBudget;
  /** Is told of every attempt, if given. */
  readonly counts?: RequestCounts;
}

const NO_COMPANY: Requester = { company: '', urgent: false };
/** A token read longer ago than this may have been renewed, or have expired. */
const TOKEN_KEEPS_MS = 5_000;

/** A new token may take a moment to reach every machine of the service. */
const NEW_TOKEN_SPREADS_MS = 1_000;

/** A response, and the token that was sent for it. */
interface Sent {
  readonly token: Secret;
  readonly response: HttpResponse;
}

/** Whether the API accepted a token. */
interface Judged {
  readonly token: Secret;
  readonly isTaken: boolean;
}

/** Reads the API of one environment: adds the token, retries while that may help, and gives each failure its code. */
export class ApiClient {
  readonly #parts: ApiClientParts;
  readonly #recordHost: ApiClient;
  /** Origin and path of {base_url}, ending with one slash. */
  readonly #base: string;

  /** `recordHost`: the host of the API that has the companies' own records, if it is another one. */
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

  /** Returns a client for another host of the same API, with the same tokens and budget. Throws `environment_not_configured`. */
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
   * Throws ServiceError: `access_token_refused` if the company's own record, too, refuses a token that was just renewed (and was reported to the token source),
   * `service_refused` (401 to this request alone, 403 and other 4xx, a redirect; the status in `details`), `service_throttled`, `service_error`, `service_timeout`,
   * `service_unreachable`, `response_too_large`, `malformed_response`; MemoryShort; and whatever `tokens` and the requester's `requireMayLeave` throw. Retryable
   * errors are thrown after the last attempt.
   */
  request(outgoing: ApiRequest): Promise<ApiResponse> {
    const { clock, logger } = this.#parts;
    const url = this.#url(outgoing);
    const what = describeRequest({ method: outgoing.method, url });
    // Renewed once per request, not once per attempt: a service that refuses every token must not cost five renewals a page.
    const renewal = { spent: false };
    return withRetries(() => this.#attempt(outgoing, url, what, renewal), {
      clock,
      signal: outgoing.signal,
      takesRefusals: outgoing.takesRefusals,
      onRetry: (error, delayMs) => {
        outgoing.onRetry?.();
        const { requester, resource } = outgoing;
        const of = { company_id: requester?.company, resource };
        logger.debug({ ...of, error: error.code, status: error.details['status'], delayMs }, `${what} will be repeated`);
      },
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
    const isSuccess = SUCCESS.has(response.status);
    if (isSuccess && response.status !== 204 && !mayBeJson(response.bytes)) throw notOfTheApi(what, response);
    if (isSuccess || isNotModified) return response as ApiResponse;
    // The response may repeat the token.
    registerSecret(token.reveal());
    throw statusError(what, response, this.#parts.clock.now());
  }

  /**
   * Handles a second 401. The company's own record, or else the list that accepted a token last, shows whether only this list refuses the token: then the 401
   * is the result, or the list's response to a newer token that they accept. Throws `access_token_refused` if a token that was just renewed is
   * refused everywhere twice in a row, after reporting it to the token source.
   */
  async #judge(outgoing: ApiRequest, url: URL, what: string, refused: Sent): Promise<Sent> {
    const { tokens, path, link } = outgoing;
    const { recordPath } = tokens;
    if (recordPath === undefined || (path === recordPath && link === undefined)) return refused;
    const host = this.#recordHost;
    const record = host.#url({ path: recordPath });
    let judged = await this.#askElsewhere(outgoing, record, refused.token);
    // A request that waited for the budget was sent with a newer token.
    const isSame = judged.token.reveal() === refused.token.reveal();
    tokens.evidence?.recordRefusedAlone(judged.isTaken && isSame ? judged.token : undefined);
    if (judged.isTaken) return isSame ? refused : this.#send(outgoing, url, judged.token);
    const renewed = await tokens.renew(judged.token, tokens.evidence?.isRefused ? 'new' : undefined);
    if (renewed.reveal() !== judged.token.reveal()) judged = await this.#askElsewhere(outgoing, record, renewed);
    if (!judged.isTaken) {
      await this.#parts.clock.sleep(NEW_TOKEN_SPREADS_MS, outgoing.signal);
      judged = await this.#askElsewhere(outgoing, record, judged.token);
    }
    if (judged.isTaken) return this.#send(outgoing, url, judged.token);
    await tokens.refused(judged.token);
    throw tokenRefused(what);
  }

  /** Asks whether the company's own record, or the list that accepted a token last, accepts this one. Throws ServiceError if neither can say now. */
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

  /** A stored address must still belong to the API, because the token is sent there. */
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

  /** Waits for the budget only after the token has been read, so that a request that waits for a token holds no place in the budget. */
  async #send(outgoing: ApiRequest, url: URL, token: Secret): Promise<Sent> {
    const { requester = NO_COMPANY, tokens, signal } = outgoing;
    const permit = await (this.#parts.budget ?? UNBOUNDED).admit(requester, signal);
    let newest = token;
    try {
      if (permit.waitedMs > TOKEN_KEEPS_MS) newest = await tokens.get();
      requester.requireMayLeave?.();
    } catch (error) {
      permit.unused();
      throw error;
    }
    const response = await this.#exchange(outgoing, url, newest, permit);
    const isTaken = SUCCESS.has(response.status) || response.status === 304;
    if (isTaken) await tokens.evidence?.taken(outgoing.mayBeWitness ? `${url.origin}${url.pathname}` : undefined);
    return { token: newest, response };
  }

  async #exchange(
    { method, body, ifNoneMatch, signal, memory, resource }: ApiRequest,
    url: URL,
    token: Secret,
    permit: Permit,
  ): Promise<HttpResponse> {
    const { http, clock, counts } = this.#parts;
    const sentAt = clock.monotonic();
    try {
      const response = await http.send({
        method,
        url,
        signal,
        memory,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${token.reveal()}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          // A cache in between must not answer instead of the service.
          ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch, 'cache-control': 'no-cache' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      permit.answered(response);
      counts?.ended(outcomeOf(response.status));
      if (resource !== undefined && isPage(response.status)) counts?.pageCame(resource, (clock.monotonic() - sentAt) / 1_000);
      return response;
    } catch (error) {
      permit.failed(error);
      counts?.ended(outcomeOf(error));
      throw error;
    }
  }

  /**
   * Appends the path to the base, or the link to the origin, without resolving it: neither a path of the catalogue nor a link of a response can
   * send the token to another host. The URL is parsed only once, because setting one part takes as long as parsing the whole.
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

/** Encodes a query, but keeps `$`: the service documents `$take`, and not every server decodes names. */
export function encodeQuery(query: Readonly<Record<string, string>>): string {
  let text = '';
  for (const name in query) {
    const value = encodeURIComponent(query[name]!);
    text += `${text && '&'}${encodeURIComponent(name).replaceAll('%24', '$')}=${value}`;
  }
  return text;
}
