import { type ErrorCode, MusterError } from '../core/errors.js';
import { parseRetryAfter } from './retry-after.js';
import { serviceSays } from './service-says.js';

type ServiceErrorCode = Extract<
  ErrorCode,
  `service_${string}` | 'access_token_refused' | 'response_too_large' | 'malformed_response'
>;

interface ServiceErrorFacts {
  /** Whether the request, or a part of it, may have reached the service. */
  readonly sent: boolean;
  readonly status?: number;
  /** Milliseconds that the service asked us to stay away. */
  readonly retryAfterMs?: number | undefined;
  /** Whether the answer is JSON or has no body, as an API answers; a page of a gateway is not. */
  readonly isInOwnWords?: boolean;
  /** The service's own sentence (serviceSays), for people; `service_says` in the details. */
  readonly serviceSays?: string | undefined;
  readonly cause?: unknown;
}

/** The service, or the way to it, failed. The cause is kept only from the transport, never from a body. */
export class ServiceError extends MusterError {
  readonly sent: boolean;
  readonly retryAfterMs: number | undefined;
  readonly serviceSays: string | undefined;

  constructor(code: ServiceErrorCode, message: string, facts: ServiceErrorFacts) {
    const { sent, status, retryAfterMs, isInOwnWords, serviceSays: sentence, cause } = facts;
    const details = {
      ...(status !== undefined && { status }),
      ...(isInOwnWords && { own_words: true }),
      ...(sentence !== undefined && { service_says: sentence }),
    };
    super(code, message, { ...(cause === undefined ? {} : { cause }), details });
    this.name = 'ServiceError';
    this.sent = sent;
    this.retryAfterMs = retryAfterMs;
    this.serviceSays = sentence;
  }
}

/** The error that a status is which is no answer. `what` names the request: method, host and path, never the query. */
export function statusError(
  what: string,
  response: { status: number; headers: Readonly<Record<string, string>>; bytes: Uint8Array },
  now: number,
): ServiceError {
  const { status } = response;
  const [code, advice] = meaning(status);
  return new ServiceError(code, `${what} answered ${status}: ${advice}`, {
    sent: true,
    status,
    isInOwnWords: speaksForItself(response),
    serviceSays: serviceSays(response),
    retryAfterMs: parseRetryAfter(response.headers['retry-after'], now),
  });
}

function speaksForItself({ headers, bytes }: { headers: Readonly<Record<string, string>>; bytes: Uint8Array }): boolean {
  return bytes.length === 0 || /^application\/([\w.-]+\+)?json\b/i.test(headers['content-type'] ?? '');
}

function meaning(status: number): [ServiceErrorCode, string] {
  if (status === 401) return ['access_token_refused', 'the access token is not accepted'];
  if (status === 403)
    return ['service_refused', 'this endpoint is not allowed; check the scopes and roles that the authorization grants'];
  if (status === 408) return ['service_timeout', 'the service gave up waiting'];
  if (status === 429) return ['service_throttled', 'too many requests'];
  if (status >= 500) return ['service_error', 'the service failed'];
  if (status >= 400) return ['service_refused', 'the request was refused; check the path and parameters in the catalogue'];
  if (status >= 300)
    return ['service_refused', 'a redirect, which is not followed, since it could carry the token elsewhere; check the base URL'];
  return ['malformed_response', 'only 200, 203, 204 and 206 answer'];
}
