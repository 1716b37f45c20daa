import { z } from 'zod';
import { parseCompanyId } from '../core/company.js';
import type { MusterError } from '../core/errors.js';
import { Secret } from '../core/secret.js';
import type { HttpResponse } from '../http/http-client.js';
import { parseRetryAfter } from '../http/retry-after.js';
import { registerSecret } from '../observability/secret-registry.js';

/** A token pair, or an access token alone. */
export interface Grant {
  readonly kind: 'granted';
  readonly accessToken: Secret;
  /** Absent: the refresh token that was sent stays in force. */
  readonly refreshToken?: Secret;
  readonly lifetimeSeconds: number;
  /** Lower case; absent where the service does not say. */
  readonly companyId?: string;
}

/** The outcome of one POST to the token endpoint, by its meaning for the token that was sent. */
export type TokenAnswer =
  | Grant
  /** The grant is void: a person must authorize again. */
  | { readonly kind: 'refused'; readonly error: string }
  /**
   * A 400 that names no fault, neither the token's nor our client's. A person who has just sent a token of their own is told that it
   * was refused; a stored authorization must not end by an answer that nobody understands.
   */
  | { readonly kind: 'unexplained'; readonly error: string }
  /** Our client id, secret or address is wrong: nothing is said of the company. */
  | { readonly kind: 'client_refused'; readonly error: string }
  /** Answered, nothing granted, worth another try. */
  | { readonly kind: 'transient'; readonly status: number; readonly retryAfterMs?: number | undefined }
  /** Answered with success, but not usable; the refresh token in it replaces the one that was sent. */
  | { readonly kind: 'malformed'; readonly refreshToken: Secret; readonly problem: string }
  /** Sent, and no readable answer: the token may have been used up. */
  | { readonly kind: 'ambiguous'; readonly cause?: MusterError; readonly problem?: string }
  /** Never sent. */
  | { readonly kind: 'unreachable'; readonly cause: MusterError };

const ASSUMED_LIFETIME_SECONDS = 1800;
/** A shorter one is a mistake: the token would be refreshed all the time. */
const SHORTEST_LIFETIME_SECONDS = 1;
/** A longer one is not believed: to refresh too often costs a request a day, while a token that dies early is found out by refused pages. */
const LONGEST_LIFETIME_SECONDS = 24 * 3600;

/** What servers take as one header. Signed tokens with many claims have some 4,000 characters. */
const LONGEST_ACCESS_TOKEN = 16_384;

const filled = z.string().min(1);

/** It goes into a header: the characters of RFC 6749 (A.12) without the space, which would end it there. */
const ACCESS_TOKEN = filled.max(LONGEST_ACCESS_TOKEN).regex(/^[\x21-\x7e]*$/);

/**
 * An unusable expires_in is assumed away: a pair lost over its lifetime would cost the customer a new authorization. The refresh token
 * may be any text, since a form carries them all.
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
  refresh_token: filled.nullish().catch(null),
  company_id: z
    .string()
    .refine((text) => parseCompanyId(text) !== undefined)
    .nullish(),
});

/** Error codes of RFC 6749, 5.2: only these are repeated in logs and messages. */
const OAUTH_ERROR = z.object({
  error: z.enum([
    'invalid_grant',
    'invalid_client',
    'unauthorized_client',
    'invalid_request',
    'unsupported_grant_type',
    'invalid_scope',
  ]),
});

/** The codes that blame our client, wherever they stand in a 400 of an unknown format. */
const CLIENT_FAULT = /\b(invalid_client|unauthorized_client|unsupported_grant_type|invalid_scope)\b/i;

/** Bytes that are not UTF-8 are passed over: tokens and codes are ASCII, and no pair must be lost over a name beside it. */
export function readTokenAnswer(
  { status, headers, bytes }: Pick<HttpResponse, 'status' | 'headers' | 'bytes'>,
  now: number,
): TokenAnswer {
  const text = new TextDecoder().decode(bytes);
  if (status >= 200 && status < 300) return readGrant(parseJson(text));
  if (status === 408 || status === 429 || status >= 500) {
    return { kind: 'transient', status, retryAfterMs: parseRetryAfter(headers['retry-after'], now) };
  }
  return readRefusal(status, text);
}

/** The service does not document its error format. */
function readRefusal(status: number, text: string): TokenAnswer {
  const body = parseJson(text);
  const error = OAUTH_ERROR.safeParse(body).data?.error;
  if (error === 'invalid_grant') return { kind: 'refused', error };
  // Elsewhere than in a 400 a proxy's page, or a refusal of our client, is as likely: neither must cost a company its authorization.
  if (status !== 400) return { kind: 'client_refused', error: error ?? `status ${status}` };
  if (error === 'invalid_request') return { kind: 'unexplained', error };
  const fault = error ?? CLIENT_FAULT.exec(text)?.[0].toLowerCase();
  if (fault !== undefined) return { kind: 'client_refused', error: fault };
  const isJson = typeof body === 'object' && body !== null;
  return { kind: isJson ? 'refused' : 'unexplained', error: 'status 400' };
}

function readGrant(body: unknown): TokenAnswer {
  const { data, error } = TOKEN_RESPONSE.safeParse(body);
  if (!data) {
    const refreshToken = z.object({ refresh_token: filled }).safeParse(body).data?.refresh_token;
    const problem = problemOf(body, error);
    return refreshToken === undefined
      ? { kind: 'ambiguous', problem }
      : { kind: 'malformed', problem, refreshToken: secret(refreshToken) };
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

/** Names the members that are missing or of no use, and none of their values. */
function problemOf(body: unknown, error: z.ZodError): string {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'the answer is no JSON object';
  const names = new Set(error.issues.map(({ path }) => String(path[0])));
  return [...names].map((name) => `${name} is ${name in body ? 'of no use' : 'missing'}`).join(', ');
}

function secret(value: string): Secret {
  registerSecret(value);
  return new Secret(value);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
