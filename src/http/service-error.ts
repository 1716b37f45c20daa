import { type ErrorCode, MusterError } from '../core/errors.js';
import { keepRefusalTexts } from '../core/refusal-texts.js';
import { parseRetryAfter } from './retry-after.js';
import { refusalTextsOf, serviceSays } from './service-says.js';

type ServiceErrorCode = Extract<
  ErrorCode,
  `service_${string}` | 'access_token_refused' | 'response_too_large' | 'malformed_response'
>;

interface ServiceErrorFacts {
  /** Whether the request, or a part of it, may have reached the service. */
  readonly sent: boolean;
  readonly status?: number;
  /** Milliseconds that the service asked us to wait. */
  readonly retryAfterMs?: number | undefined;
  /** The response is JSON, whatever its content type, or has no body: it comes from the API and not from a gateway. */
  readonly isInOwnWords?: boolean;
  /** The service's own sentence (serviceSays), for people; `service_says` in the details. */
  readonly serviceSays?: string | undefined;
  /** All texts of the body (refusalTextsOf), for the pagers; no member of the error holds them. */
  readonly texts?: readonly string[] | undefined;
  /** Whether the same request may succeed later; by default the code decides. */
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/** The service, or the way to it, failed. The cause is kept only from the transport, never from a body. */
export class ServiceError extends MusterError {
  readonly sent: boolean;
  readonly retryAfterMs: number | undefined;
  readonly serviceSays: string | undefined;

  constructor(code: ServiceErrorCode, message: string, facts: ServiceErrorFacts) {
    const { sent, status, retryAfterMs, isInOwnWords, serviceSays: sentence, texts, retryable, cause } = facts;
    const details = {
      ...(status !== undefined && { status }),
      ...(isInOwnWords && { own_words: true }),
      ...(sentence !== undefined && { service_says: sentence }),
    };
    super(code, message, {
      ...(cause === undefined ? {} : { cause }),
      ...(retryable === undefined ? {} : { retryable }),
      details,
    });
    this.name = 'ServiceError';
    this.sent = sent;
    this.retryAfterMs = retryAfterMs;
    this.serviceSays = sentence;
    if (texts) keepRefusalTexts(this, texts);
  }
}

/** The service's own sentence, if the error has one. */
export function sentenceOf(error: unknown): string | undefined {
  return error instanceof ServiceError ? error.serviceSays : undefined;
}

interface ResponseFacts {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
}

/** These statuses are temporary, whatever the body says: Too Early, and 499, where a proxy gave up. */
const TEMPORARY = new Set([425, 499]);

/**
 * Makes the error for a status other than success. `what` names the request: method, host and path, never the query. A response that is not
 * from the API, such as the page of a firewall, a gateway or a status site, is retryable like a 503.
 */
export function statusError(what: string, response: ResponseFacts, now: number): ServiceError {
  const { status, headers } = response;
  const [code, advice] = meaning(status);
  const isInOwnWords = speaksForItself(response);
  const mayPass = !isInOwnWords || (status >= 300 && status < 400) || TEMPORARY.has(status);
  const strange = isInOwnWords
    ? ''
    : `, with ${typeOf(headers)} and not in the words of an API; a gateway or firewall may be in between`;
  return new ServiceError(code, `${what} answered ${status}: ${advice}${strange}`, {
    sent: true,
    status,
    isInOwnWords,
    serviceSays: serviceSays(response),
    texts: refusalTextsOf(response),
    retryAfterMs: parseRetryAfter(headers['retry-after'], now),
    ...(mayPass && { retryable: true }),
  });
}

/** First bytes of any JSON value, and of an object or array. */
const JSON_STARTS = Buffer.from('{["-0123456789tfn');
const STRUCTURE_STARTS = Buffer.from('{[');
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const SPACES = Buffer.from(' \t\r\n');

/** Whether the body may be JSON, judged by its first byte. HTML, plain text and an empty body are not. */
export function mayBeJson(bytes: Buffer): boolean {
  return startsWithOneOf(JSON_STARTS, bytes);
}

function startsWithOneOf(starts: Buffer, bytes: Buffer): boolean {
  let at = bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0;
  while (at < bytes.length && SPACES.includes(bytes[at]!)) at += 1;
  return at < bytes.length && starts.includes(bytes[at]!);
}

/** Makes the error for a success without JSON: it is not from the API, so a later attempt may succeed. */
export function notOfTheApi(what: string, { status, headers, bytes }: ResponseFacts): ServiceError {
  const held = bytes.length === 0 ? 'an empty body' : `${typeOf(headers)} that is no JSON (${bytes.length} bytes)`;
  const advice = 'a gateway or a maintenance page may be in between; check the base URL if this persists';
  return new ServiceError('malformed_response', `${what} answered ${status} with ${held}: ${advice}`, {
    sent: true,
    status,
    retryable: true,
  });
}

/** The content type of the response, for a message. It is external text, so anything unusual is left out. */
function typeOf(headers: Readonly<Record<string, string>>): string {
  const type = headers['content-type']?.split(';', 1)[0]?.trim() ?? '';
  return /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(type) ? type : 'a body';
}

function speaksForItself({ headers, bytes }: ResponseFacts): boolean {
  const isNamedJson = /^application\/([\w.-]+\+)?json\b/i.test(headers['content-type'] ?? '');
  return bytes.length === 0 || startsWithOneOf(isNamedJson ? JSON_STARTS : STRUCTURE_STARTS, bytes);
}

/** Both a list and the company's own record answered 401 to a token that was just renewed. */
export function tokenRefused(what: string): ServiceError {
  return new ServiceError(
    'access_token_refused',
    `${what} answered 401, and so did the company's own record to a token that was just renewed: have the company authorize again`,
    { sent: true, status: 401 },
  );
}

/** A list answered 401, and the company's own record could not be read to judge the token. Both are requested again. */
export function recordUnread(what: string, response: ResponseFacts, now: number): ServiceError {
  const { status } = response;
  return new ServiceError(
    status === 429 ? 'service_throttled' : 'service_error',
    `${what} answered ${status}, so it is unknown whether the token that a list refused is refused everywhere; it is asked again`,
    { sent: true, status, retryAfterMs: parseRetryAfter(response.headers['retry-after'], now) },
  );
}

/** Whether the response is a web page, and so comes from a gateway or firewall and not from the API. */
export function isWebPage({ headers, bytes }: ResponseFacts): boolean {
  const start = new TextDecoder().decode(bytes.subarray(0, 200));
  return /^(text\/html|application\/xhtml\+xml)\b/i.test(headers['content-type'] ?? '') || /^\s*<(!doctype|html)\b/i.test(start);
}

function meaning(status: number): [ServiceErrorCode, string] {
  if (status === 401)
    return [
      'service_refused',
      'the access token is not accepted here, though other endpoints may accept it; check the scopes and roles that the authorization grants',
    ];
  if (status === 403)
    return ['service_refused', 'this endpoint is not allowed; check the scopes and roles that the authorization grants'];
  if (status === 408) return ['service_timeout', 'the service gave up waiting'];
  if (status === 429) return ['service_throttled', 'too many requests'];
  if (status >= 500) return ['service_error', 'the service failed'];
  if (status >= 400) return ['service_refused', 'the request was refused; check the path and parameters in the catalogue'];
  if (status >= 300)
    return [
      'service_refused',
      'a redirect, which Muster does not follow because it could send the token elsewhere; check the base URL',
    ];
  return ['malformed_response', 'only 200, 203, 204 and 206 answer'];
}
