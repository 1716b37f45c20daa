// The kinds of failures of a run's walks, and their consequences:
//
//   ends the run    it concerns the whole company or this process, so the next list would only repeat it
//   may pass        the run waits and retries from its checkpoints, until no delay is left; then it fails
//   stays           the run fails without a retry, after its other lists were walked
import { type ErrorView, isMusterError } from '../core/errors.js';
import { ServiceError } from '../http/service-error.js';
import type { OpenWalk } from '../walks/open-walk.js';

export interface WalkFailure {
  readonly resource: string;
  readonly error: unknown;
  readonly mayPass: boolean;
}

/** Delays before each retry of a run. Their sum is how long an outage may last before a run fails; the next nightly run starts afresh. */
const RETRY_DELAYS_SECONDS = [10, 20, 30, 60, 120, 300, 600, 1_800];
/** The longest Retry-After that a run obeys. */
const LONGEST_RETRY_AFTER_SECONDS = 86_400;
/** The longest Retry-After obeyed after a refusal: firewalls ask for a day after blocking a request. */
const LONGEST_AFTER_REFUSAL_SECONDS = 1_800;

/** Errors that are taken for passing ones in a list that was read before. */
const REFUSALS = ['service_refused', 'malformed_envelope'] as const;

/** Whether the error concerns the whole company or this process, so that the next list would only repeat it. */
export function endsTheRun(error: unknown): boolean {
  const codes = ['reauthorization_required', 'access_token_refused', 'company_not_found', 'fenced'] as const;
  return goesOnLater(error) || codes.some((code) => isMusterError(error, code));
}

/** Whether the run only leaves this process: it is no failure, and counts as no attempt. */
export function goesOnLater(error: unknown): boolean {
  return isMusterError(error, 'quiet_hours') || isMusterError(error, 'stopping');
}

/**
 * Whether another attempt may succeed: later, or in a worker with settings that this one lacks. A response that is not JSON came from a
 * gateway, not from the API. `walk`: the failed walk, if it was opened.
 */
export function mayPass(error: unknown, walk?: Pick<OpenWalk, 'wasRead'>): boolean {
  if (!isMusterError(error) || error.retryable) return true;
  if (isMusterError(error, 'environment_not_configured') || isMusterError(error, 'malformed_response')) return true;
  return walk?.wasRead === true && REFUSALS.some((code) => isMusterError(error, code));
}

/** Seconds until the next attempt, not before the Retry-After of the service; undefined if no attempt is worth it, or none is left. */
export function retryDelay(attempts: number, failures: readonly Pick<WalkFailure, 'error' | 'mayPass'>[]): number | undefined {
  const passing = failures.filter((failure) => failure.mayPass);
  const delay = RETRY_DELAYS_SECONDS[attempts];
  if (passing.length === 0 || delay === undefined) return undefined;
  return Math.max(delay, ...passing.map(({ error }) => retryAfterSeconds(error)));
}

/** The Retry-After of the service, within the limits. */
function retryAfterSeconds(error: unknown): number {
  if (!(error instanceof ServiceError)) return 0;
  const longest = error.code === 'service_refused' ? LONGEST_AFTER_REFUSAL_SECONDS : LONGEST_RETRY_AFTER_SECONDS;
  return Math.min(longest, Math.ceil((error.retryAfterMs ?? 0) / 1_000));
}

/** Whether the same checkpoint would only lead to this error again. */
export function leadsNowhere(error: unknown): boolean {
  const codes = ['page_token_loop', 'page_token_expired', 'pager_misdeclared'] as const;
  return codes.some((code) => isMusterError(error, code));
}

/** The most lists named in the error of a run. */
const MOST_NAMED = 5;

export function walksFailed(failures: readonly WalkFailure[]): ErrorView {
  const named = failures.slice(0, MOST_NAMED).map(({ resource, error }) => `${resource} (${viewError(error).code})`);
  const more = failures.length > MOST_NAMED ? ` and ${failures.length - MOST_NAMED} more` : '';
  const message = `${failures.length} of the run's lists could not be walked: ${named.join(', ')}${more}. The run's walks say why.`;
  return { code: 'walks_failed', message };
}

export function viewError(error: unknown): ErrorView {
  return isMusterError(error)
    ? { code: error.code, message: error.message }
    : { code: 'internal_error', message: 'An unexpected error stopped the walk; the log has the details.' };
}
