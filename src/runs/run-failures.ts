// The consequences of the failures of a run's walks:
//
//   ends the run    the whole company has the trouble: its next list would only repeat it
//   may pass        the run waits and tries again from its checkpoints, until no delay is left; then it fails with the cause
//   stays           the run fails at once, after its other lists were walked
import { type ErrorView, isMusterError } from '../core/errors.js';
import { ServiceError } from '../http/service-error.js';
import type { OpenWalk } from '../walks/open-walk.js';

/** A walk that failed. */
export interface WalkFailure {
  readonly resource: string;
  readonly error: unknown;
  readonly mayPass: boolean;
}

/**
 * Delays before each new attempt of a run that failed. Their sum is how long an outage may last before a run is given
 * up: the next nightly run starts anew anyway.
 */
const RETRY_DELAYS_SECONDS = [10, 20, 30, 60, 120, 300, 600, 1_800];
/** The longest that a service is left alone because it asked for it, and that a list is for which it refused a request: firewalls say a day for a blocked one. */
const LONGEST_RETRY_AFTER_SECONDS = 86_400;
const LONGEST_AFTER_REFUSAL_SECONDS = 1_800;

/** Refusals, and answers of another kind than a list gives, which a list that was read before gives for a time only, as far as anybody can know. */
const REFUSALS = ['service_refused', 'malformed_envelope'] as const;

/** Errors that concern the whole company: going on with its next list would only repeat them. */
export function endsTheRun(error: unknown): boolean {
  const codes = ['reauthorization_required', 'access_token_refused', 'company_not_found', 'fenced'] as const;
  return codes.some((code) => isMusterError(error, code));
}

/**
 * Whether another attempt may fare better: later, or in a worker that has the settings which this one lacks. What is no JSON is no answer of the
 * API. `walk`: the one that failed, where it was opened.
 */
export function mayPass(error: unknown, walk?: Pick<OpenWalk, 'wasRead'>): boolean {
  if (!isMusterError(error) || error.retryable) return true;
  if (isMusterError(error, 'environment_not_configured') || isMusterError(error, 'malformed_response')) return true;
  return walk?.wasRead === true && REFUSALS.some((code) => isMusterError(error, code));
}

/** Seconds until another attempt, not before the service asked for it; undefined when none is worth it, or none is left. */
export function retryDelay(attempts: number, failures: readonly Pick<WalkFailure, 'error' | 'mayPass'>[]): number | undefined {
  const passing = failures.filter((failure) => failure.mayPass);
  const delay = RETRY_DELAYS_SECONDS[attempts];
  if (passing.length === 0 || delay === undefined) return undefined;
  return Math.max(delay, ...passing.map(({ error }) => askedSeconds(error)));
}

/** Seconds for which the service asked to be left alone, as far as it is. */
function askedSeconds(error: unknown): number {
  if (!(error instanceof ServiceError)) return 0;
  const longest = error.code === 'service_refused' ? LONGEST_AFTER_REFUSAL_SECONDS : LONGEST_RETRY_AFTER_SECONDS;
  return Math.min(longest, Math.ceil((error.retryAfterMs ?? 0) / 1_000));
}

/** Errors to which the same checkpoint would only lead again. */
export function leadsNowhere(error: unknown): boolean {
  const codes = ['page_token_loop', 'page_token_expired', 'pager_misdeclared'] as const;
  return codes.some((code) => isMusterError(error, code));
}

/** Lists that are named in the error of a run; the run's walks say the rest. */
const MOST_NAMED = 5;

/** The error of a run some of whose lists failed. */
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
