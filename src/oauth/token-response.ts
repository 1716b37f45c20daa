import { z } from 'zod';
import { parseCompanyId } from '../core/company.js';
import type { MusterError } from '../core/errors.js';
import { isObject, parseJson } from '../core/json.js';
import { Secret } from '../core/secret.js';
import type { HttpResponse } from '../http/http-client.js';
import { parseRetryAfter } from '../http/retry-after.js';
import { redactText } from '../observability/redaction.js';
import { registerSecret } from '../observability/secret-registry.js';

/** A token pair, or an access token alone. */
export interface Grant {
  readonly kind: 'granted';
  readonly accessToken: Secret;
  /** Absent: the refresh token that was sent stays valid. */
  readonly refreshToken?: Secret;
  readonly lifetimeSeconds: number;
  /** Lower case; absent if the service does not name it. */
  readonly companyId?: string;
}

/** An error of the token endpoint. */
interface Answered {
  readonly status: number;
  /** Its `error`, if that is a code that may be shown. */
  readonly error?: string | undefined;
  /** Milliseconds that the service asked us to wait. */
  readonly retryAfterMs?: number | undefined;
}

/** The outcome of one POST to the token endpoint, by its meaning for the token that was sent. */
export type TokenResponse =
  | Grant
  /** `invalid_grant`: the grant is void, and a person must authorize again. */
  | (Answered & { readonly kind: 'refused' })
  /** An error that blames neither the token nor our client. It ends no authorization, because the token stays valid. */
  | (Answered & { readonly kind: 'unexplained' })
  /** Our client id, secret or address is wrong. This does not concern the company. */
  | (Answered & { readonly kind: 'client_refused' })
  /** 408, 429 or 5xx: nothing was granted, and a retry soon may help. */
  | (Answered & { readonly kind: 'transient' })
  /** An unusable success. Its refresh token replaces the one that was sent, unless an error came with it (`refusal`). */
  | {
      readonly kind: 'malformed';
      readonly status: number;
      readonly refreshToken: Secret;
      readonly problem: string;
      readonly refusal?: TokenResponse;
    }
  /** Sent, but without a readable answer: the token may be used up. */
  | { readonly kind: 'ambiguous'; readonly status?: number; readonly cause?: MusterError; readonly problem?: string }
  /** Never sent. */
  | { readonly kind: 'unreachable'; readonly cause: MusterError };

const ASSUMED_LIFETIME_SECONDS = 1800;
/** A shorter lifetime is an error: the token would be refreshed all the time. */
const SHORTEST_LIFETIME_SECONDS = 1;
/** A longer lifetime is shortened: an unnecessary refresh costs a request a day, while a token that expires early costs refused pages. */
const LONGEST_LIFETIME_SECONDS = 24 * 3600;

/** Limit of servers for one header. Signed tokens with many claims have some 4,000 characters. */
const LONGEST_ACCESS_TOKEN = 16_384;

const filled = z.string().min(1);

/** Excludes texts that serializers and templates write for a missing value. */
const REFRESH_TOKEN = filled.refine((text) => !/^(null|undefined|none)$/i.test(text));

/** The characters of RFC 6749 (A.12), without the space, because the token is sent in a header. */
const ACCESS_TOKEN = filled.max(LONGEST_ACCESS_TOKEN).regex(/^[\x21-\x7e]*$/);

/**
 * An unusable expires_in is replaced by a default, because a pair lost for it would cost the customer a new authorization. The refresh token
 * may be any text, because a form can carry any.
 */
const TOKEN_RESPONSE = z.object({
  access_token: ACCESS_TOKEN,
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .nullish(),
  expires_in: z
    .union([
      z.number(),
      z
        .string()
        .regex(/^\d+(\.\d+)?$/)
        .transform(Number),
    ])
    .pipe(z.number().min(SHORTEST_LIFETIME_SECONDS))
    .transform((seconds) => Math.min(seconds, LONGEST_LIFETIME_SECONDS))
    .catch(ASSUMED_LIFETIME_SECONDS),
  refresh_token: REFRESH_TOKEN.nullish().catch(null),
  company_id: z
    .string()
    .refine((text) => parseCompanyId(text) !== undefined)
    .nullish(),
});

/** An error code in the form of RFC 6749. Other texts are not repeated in logs and messages, because they may hold anything. */
const ERROR_CODE = /^[a-z_]{1,40}$/;

/** Codes that blame our client, alone or in an answer of an unknown format. */
const CLIENT_FAULTS = ['invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_scope'];
const CLIENT_FAULT = new RegExp(`\\b(${CLIENT_FAULTS.join('|')})\\b`, 'i');

/** Codes with which a service reports its own failure. */
const SERVICE_FAULTS: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error', 'slow_down', 'unknown_error']);

/** Interprets a response. Ignores invalid UTF-8: tokens and codes are ASCII, and no pair must be lost for another member. */
export function readTokenResponse(
  { status, headers, bytes }: Pick<HttpResponse, 'status' | 'headers' | 'bytes'>,
  now: number,
): TokenResponse {
  const text = new TextDecoder().decode(bytes);
  const body = parseJson(text);
  const isSuccess = status >= 200 && status < 300;
  const granted = isSuccess ? readGrant(status, body) : undefined;
  if (granted?.kind === 'granted') return granted;
  const error = errorCodeOf(body);
  const answered = { status, error, retryAfterMs: parseRetryAfter(headers['retry-after'], now) };
  const isRefused = memberOf(body, 'error') === 'invalid_grant';
  const refusal: TokenResponse = isRefused ? { kind: 'refused', ...answered } : readError(answered, text);
  if (granted && !hasError(body)) return granted;
  if (granted?.kind === 'malformed') return { ...granted, refusal };
  if (granted || isRefused) return refusal;
  if (status === 408 || status === 429 || status >= 500) return { kind: 'transient', ...answered };
  return refusal;
}

/** The service does not document its error format. An error that is not understood must not cost a company its authorization. */
function readError(answered: Answered, text: string): TokenResponse {
  const { status, error = status === 400 ? CLIENT_FAULT.exec(text)?.[0].toLowerCase() : undefined } = answered;
  // RFC 6749, 5.2: 401 says that the client could not be authenticated.
  const isClientFault = error === undefined ? status === 401 : CLIENT_FAULTS.includes(error);
  return { ...answered, error, kind: isClientFault ? 'client_refused' : 'unexplained' };
}

/** The likely cause of an unexplained error, for a person who has just given a token or a code. */
export function suspectOf({ status, error }: Answered): 'token' | 'client' | 'service' {
  if (error !== undefined && SERVICE_FAULTS.has(error)) return 'service';
  // Other statuses than 400 are likely a proxy's page or a refusal of our client.
  return status === 400 || status < 300 ? 'token' : 'client';
}

/** The status of an answer, and its error code if there is one: "400 access_denied". */
export function answerText({ status, error }: { status: number; error?: string | null | undefined }): string {
  return error == null ? String(status) : `${status} ${error}`;
}

function errorCodeOf(body: unknown): string | undefined {
  const error = memberOf(body, 'error');
  return typeof error === 'string' && ERROR_CODE.test(error) && redactText(error) === error ? error : undefined;
}

/** Whether `error` is filled, in any form. */
function hasError(body: unknown): boolean {
  const error = memberOf(body, 'error');
  return typeof error === 'string' ? error !== '' : typeof error === 'object' && error !== null;
}

function memberOf(body: unknown, name: string): unknown {
  return isObject(body) ? body[name] : undefined;
}

function readGrant(status: number, body: unknown): TokenResponse {
  const { data, error } = TOKEN_RESPONSE.safeParse(body);
  if (!data) {
    const refreshToken = z.object({ refresh_token: REFRESH_TOKEN }).safeParse(body).data?.refresh_token;
    const problem = problemOf(body, error);
    return refreshToken === undefined
      ? { kind: 'ambiguous', status, problem }
      : { kind: 'malformed', status, problem, refreshToken: secret(refreshToken) };
  }
  const companyId = parseCompanyId(data.company_id ?? '');
  return {
    kind: 'granted',
    accessToken: secret(data.access_token),
    lifetimeSeconds: data.expires_in,
    ...(data.refresh_token == null ? {} : { refreshToken: secret(data.refresh_token) }),
    ...(companyId === undefined ? {} : { companyId }),
  };
}

/** Names missing and unusable members, without their values. */
function problemOf(body: unknown, error: z.ZodError): string {
  if (!isObject(body)) return 'the answer is no JSON object';
  const names = new Set(error.issues.map(({ path }) => String(path[0])));
  return [...names].map((name) => `${name} is ${name in body ? 'of no use' : 'missing'}`).join(', ');
}

function secret(value: string): Secret {
  registerSecret(value);
  return new Secret(value);
}
