import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../../core/errors.js';

const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().describe('Stable; docs/errors.md says what each means and what to do.'),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details.' });

const PROBLEM_TYPE = 'application/problem+json';

/** The meanings of the problems of single calls; docs/errors.md says what to do. */
const MEANINGS = {
  company_not_found: 'The company is not onboarded in this environment.',
  run_not_found: 'There is no such run.',
  hold_not_found: 'There is no such hold.',
  certificate_not_found: 'There is no such certificate.',
  notification_not_found: 'There is no such notification.',
  issue_not_found: 'There is no such issue.',
  issue_resolved: 'The issue has ended.',
  quarantined_token_not_found: 'There is no such token in quarantine.',
  token_not_found: 'There is no such named token.',
  token_name_taken: 'Another living token has this name.',
  webhook_not_configured: 'No notification is sent: no webhook is set.',
  already_onboarded: 'The company is onboarded, and its authorization stands. The token was not spent.',
  onboarding_in_progress: 'Another request is onboarding this company, or one with the same token.',
  company_paused: 'The company is paused and not synced.',
  reauthorization_required: 'A person must authorize the company again.',
  invalid_quiet_hours: 'The quiet hours cannot be used; `detail` says why.',
  hold_not_open: 'The hold is decided already, or a newer walk has made it stale.',
  changes_expired: 'Changes after `after` are no longer kept; `go_on_after` says where the feed goes on.',
  feed_restarted:
    'The numbers that you have are of another feed, as after a restored backup; `feed` and `go_on_after` say where this one stands.',
  environment_not_configured: 'Muster has no settings for this environment of the service.',
  unknown_resource: 'There is no such list.',
  token_refused: 'The service refused the refresh token.',
  token_for_another_company: "The refresh token is another company's.",
  service_unreachable: 'The service was not reached, or gave no usable answer.',
  service_refused: 'The service refused our client credentials.',
  token_not_stored: 'The service granted new tokens and the database did not take them; `detail` says where they are kept.',
  mark_key_unreadable: 'The key of the marks cannot be decrypted: its encryption key is missing.',
  token_busy: 'Another process is renewing the token of the company; ask again.',
  tokens_held: 'Tokens are not renewed now: see the issue `tokens_held`.',
  token_unreadable: 'A stored token cannot be decrypted: its key is missing.',
  database_unavailable: 'PostgreSQL does not answer.',
  statement_cancelled: 'PostgreSQL cancelled a statement; nothing was changed.',
  database_full: 'The disk of PostgreSQL is full; nothing was changed.',
  database_failing: 'PostgreSQL is out of memory, or a file of it fails; nothing was changed.',
  database_copied:
    'The database is a copy, or was restored, and no person has said yet which it is: POST /api/installation/adopt or /detach.',
  installation_detached: 'The database is a copy of an installation, and asks nothing of the service.',
  database_busy: 'Another transaction was in the way for too long; nothing was changed.',
  queue_unavailable: 'The queue does not answer.',
  overloaded: 'As much of this kind is under way as the process takes; ask again after `Retry-After` seconds.',
} as const satisfies Partial<Record<ErrorCode, string>>;

/** A problem of single calls. `declareProblems` declares the problems of every call. */
export type OwnProblem = keyof typeof MEANINGS;

/** Bodies by content type. */
type Content = Record<string, { readonly schema: unknown; example?: unknown }>;

interface Operation {
  readonly operationId?: string;
  readonly parameters?: readonly { readonly in: string }[];
  readonly security?: readonly unknown[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses: Record<string, { description: string; content?: Content }>;
}

interface CommonProblem {
  readonly code: ErrorCode;
  readonly means: string;
  /** Default: the status of the code. */
  readonly status?: number;
  /** Restricts the problem to some operations. */
  readonly of?: (operation: Operation, method: string) => boolean;
}

/** The problems of every call. */
const COMMON: readonly CommonProblem[] = [
  { code: 'invalid_request', means: 'The request is not valid; `errors` names each fault.' },
  { code: 'unauthorized', means: 'The call has no right bearer token.', of: needsToken },
  { code: 'forbidden', means: 'The role of the token has too little right for this call.', of: needsMoreThanViewer },
  { status: 408, code: 'invalid_request', means: 'The request did not come to its end in time.' },
  { code: 'idempotency_key_in_use', means: 'The first call with this `Idempotency-Key` is under way.', of: takesIdempotencyKey },
  ...ownProblems(['database_copied', 'installation_detached'], takesIdempotencyKey),
  { status: 413, code: 'invalid_request', means: 'The body is too large.', of: readsBody },
  { status: 414, code: 'invalid_request', means: 'The address is too long.', of: hasParameterInPath },
  { status: 415, code: 'invalid_request', means: 'The body is not sent as JSON.', of: readsBody },
  { status: 417, code: 'invalid_request', means: 'The request expects something else than 100-continue.' },
  { code: 'idempotency_key_reused', means: 'Another request has this `Idempotency-Key`.', of: takesIdempotencyKey },
  { status: 431, code: 'invalid_request', means: 'The headers are too large.' },
  { code: 'internal_error', means: "Something failed that should not have; Muster's log says more." },
  {
    code: 'answer_unreadable',
    means: 'The answer kept for this `Idempotency-Key` cannot be decrypted: its key is missing.',
    of: takesIdempotencyKey,
  },
  ...ownProblems(
    ['database_unavailable', 'statement_cancelled', 'database_full', 'database_failing', 'database_busy'],
    needsToken,
  ),
  { code: 'stopping', means: 'The process is being stopped.' },
];

function ownProblems(codes: readonly OwnProblem[], of: NonNullable<CommonProblem['of']>): CommonProblem[] {
  return codes.map((code) => ({ code, means: MEANINGS[code], of }));
}

function needsToken({ security }: Operation): boolean {
  return security?.length !== 0;
}

/** `viewer` is the lowest role: every role may do the same. */
function needsMoreThanViewer(operation: Operation): boolean {
  const [need] = (operation.security ?? []) as readonly { readonly bearer?: readonly string[] }[];
  return needsToken(operation) && need?.bearer?.[0] !== 'viewer';
}

function takesIdempotencyKey(operation: Operation, method: string): boolean {
  return method === 'post' && needsToken(operation);
}

function readsBody(_operation: Operation, method: string): boolean {
  return method !== 'get';
}

function hasParameterInPath({ parameters }: Operation): boolean {
  return parameters?.some((parameter) => parameter.in === 'path') ?? false;
}

/** The responses of a route for its own problems, by status. */
export function problemAnswers(codes: readonly OwnProblem[]) {
  const lines = new Map<number, string[]>();
  for (const code of codes) {
    const { status } = ERROR_CODES[code];
    lines.set(status, [...(lines.get(status) ?? []), describe(code, MEANINGS[code])]);
  }
  const answers = [...lines].map(
    ([status, own]) => [status, { description: own.join('\n'), content: { [PROBLEM_TYPE]: { schema: Problem } } }] as const,
  );
  return Object.fromEntries(answers);
}

/** The responses in a document, by path and method. */
export interface DocumentedApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** Adds the problems of every call to each operation of a document. */
export function declareProblems({ paths }: DocumentedApi): void {
  const schema = { $ref: '#/components/schemas/Problem' };
  for (const methods of Object.values(paths))
    for (const [method, operation] of Object.entries(methods))
      for (const { code, means, of, status = ERROR_CODES[code].status } of COMMON) {
        if (of && !of(operation, method)) continue;
        const { description = '', content } = operation.responses[status] ?? {};
        if (description.includes(`\`${code}\``)) continue;
        operation.responses[status] = {
          description: [description, describe(code, means)].filter(Boolean).join('\n'),
          content: { ...content, [PROBLEM_TYPE]: { schema } },
        };
      }
}

function describe(code: ErrorCode, means: string): string {
  return `- \`${code}\`: ${means}`;
}
