/**
 * Every error that Muster raises on purpose, by its stable code. `status` is the HTTP status with which the admin API
 * answers it; `retryable` says that the same call may succeed later without anybody doing anything.
 * src/core/advice.ts says what to do about each; docs/errors.md is written from both.
 */
export const ERROR_CODES = {
  // Input
  invalid_configuration: { status: 500, retryable: false },
  invalid_catalogue: { status: 500, retryable: false },
  invalid_request: { status: 400, retryable: false },
  unauthorized: { status: 401, retryable: false },
  forbidden: { status: 403, retryable: false },
  not_found: { status: 404, retryable: false },
  company_not_found: { status: 404, retryable: false },
  run_not_found: { status: 404, retryable: false },
  hold_not_found: { status: 404, retryable: false },
  certificate_not_found: { status: 404, retryable: false },
  notification_not_found: { status: 404, retryable: false },
  issue_not_found: { status: 404, retryable: false },
  issue_resolved: { status: 409, retryable: false },
  quarantined_token_not_found: { status: 404, retryable: false },
  token_not_found: { status: 404, retryable: false },
  token_name_taken: { status: 409, retryable: false },
  webhook_not_configured: { status: 409, retryable: false },
  changes_expired: { status: 410, retryable: false },
  feed_restarted: { status: 410, retryable: false },
  idempotency_key_reused: { status: 422, retryable: false },
  idempotency_key_in_use: { status: 409, retryable: true },
  environment_not_configured: { status: 422, retryable: false },
  unknown_resource: { status: 422, retryable: false },
  lists_unproved: { status: 409, retryable: false },
  // Companies and their authorization
  database_copied: { status: 409, retryable: false },
  installation_detached: { status: 409, retryable: false },
  already_onboarded: { status: 409, retryable: false },
  onboarding_in_progress: { status: 409, retryable: false },
  company_paused: { status: 409, retryable: false },
  reauthorization_required: { status: 409, retryable: false },
  grant_changed: { status: 409, retryable: true },
  token_refused: { status: 422, retryable: false },
  token_for_another_company: { status: 422, retryable: false },
  token_unreadable: { status: 500, retryable: false },
  answer_unreadable: { status: 500, retryable: false },
  mark_key_unreadable: { status: 500, retryable: false },
  token_busy: { status: 503, retryable: true },
  token_not_stored: { status: 503, retryable: true },
  tokens_held: { status: 503, retryable: true },
  hold_not_open: { status: 409, retryable: false },
  rekey_required: { status: 409, retryable: false },
  quiet_hours: { status: 409, retryable: true },
  invalid_quiet_hours: { status: 422, retryable: false },
  // The service
  service_unreachable: { status: 502, retryable: true },
  service_timeout: { status: 502, retryable: true },
  service_error: { status: 502, retryable: true },
  worker_died: { status: 500, retryable: false },
  walks_failed: { status: 502, retryable: true },
  service_throttled: { status: 502, retryable: true },
  service_refused: { status: 502, retryable: false },
  access_token_refused: { status: 502, retryable: false },
  response_too_large: { status: 502, retryable: false },
  malformed_response: { status: 502, retryable: false },
  malformed_envelope: { status: 502, retryable: false },
  contradicting_envelope: { status: 502, retryable: true },
  success_denied: { status: 502, retryable: true },
  pager_misdeclared: { status: 502, retryable: false },
  page_token_loop: { status: 502, retryable: false },
  page_token_expired: { status: 502, retryable: true },
  walk_limit_exceeded: { status: 502, retryable: true },
  // Muster itself
  fenced: { status: 500, retryable: true },
  overloaded: { status: 503, retryable: true },
  stopping: { status: 503, retryable: true },
  database_unavailable: { status: 503, retryable: true },
  statement_cancelled: { status: 503, retryable: true },
  database_full: { status: 503, retryable: true },
  database_failing: { status: 503, retryable: true },
  database_busy: { status: 503, retryable: true },
  process_outdated: { status: 503, retryable: false },
  no_worker: { status: 503, retryable: false },
  queue_unavailable: { status: 503, retryable: true },
  migration_failed: { status: 500, retryable: false },
  embedded_database_failed: { status: 500, retryable: false },
  export_failed: { status: 500, retryable: false },
  port_in_use: { status: 500, retryable: false },
  internal_error: { status: 500, retryable: false },
} as const satisfies Record<string, { status: number; retryable: boolean }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/**
 * An error with a stable code. The message says what failed, where, and what to do next; it never carries a response
 * body or a token. Callers decide by `code` and `retryable`, never by the message.
 */
export class MusterError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  /** Facts for the log and for problem+json: plain JSON, nothing secret. */
  readonly details: Readonly<Record<string, unknown>>;

  /** `retryable` is taken from the code, unless this one error is known to be an exception. */
  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; details?: Record<string, unknown>; retryable?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'MusterError';
    this.code = code;
    this.retryable = options.retryable ?? ERROR_CODES[code].retryable;
    this.details = options.details ?? {};
  }

  get status(): number {
    return ERROR_CODES[this.code].status;
  }
}

/** One fault of an input: its place, the fault in words, and an example of a right value. */
export interface Fault {
  readonly where: string;
  readonly problem: string;
  readonly example?: string;
}

/** Reports every fault of an input at once. */
export class FaultsError extends MusterError {
  readonly faults: readonly Fault[];

  constructor(code: 'invalid_configuration' | 'invalid_catalogue', heading: string, faults: readonly Fault[]) {
    const lines = faults.map(
      ({ where, problem, example }) => `  ${where}: ${problem}${example ? ` (for example: ${example})` : ''}`,
    );
    super(code, `${heading}\n${lines.join('\n')}`);
    this.faults = faults;
  }
}

export function isMusterError(error: unknown, code?: ErrorCode): error is MusterError {
  return error instanceof MusterError && (code === undefined || error.code === code);
}

/** A failure as responses and rows show it. */
export interface ErrorView {
  readonly code: ErrorCode;
  readonly message: string;
}
