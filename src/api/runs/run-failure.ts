import { failureInWords } from '../../core/failure-words.js';
import type { RunModel } from './run-model.js';

/** The first failure of a run, or of the last attempt of a run that waits to retry. */
export interface RunFailure {
  readonly code: string;
  readonly message: string;
  /** The list that failed; unset if the whole run did. */
  readonly resource?: string | undefined;
  readonly service_says?: string | undefined;
  /** Further lists that failed. */
  readonly others: number;
}

/** Undefined if nothing has failed. Lists that ended with their run have its error, so several with one error mean that the whole run failed. */
export function failureOf({ status, error, walks }: Pick<RunModel, 'status' | 'error' | 'walks'>): RunFailure | undefined {
  if (status === 'succeeded' || status === 'cancelled') return undefined;
  const failed = walks.filter((walk) => walk.status === 'failed' && walk.error);
  const [first] = failed;
  const isOfRun =
    failed.length > 1 && failed.length === walks.length && failed.every((walk) => walk.error!.message === error?.message);
  // The error of a run that goes on is that of an attempt before.
  if (!first || isOfRun) return status !== 'running' && error ? { ...error, others: 0 } : undefined;
  return { ...first.error!, resource: first.resource, service_says: first.service_says, others: failed.length - 1 };
}

/** "employees: the service refused it, and 2 more lists" */
export function failureLine({ code, resource, others }: RunFailure): string {
  const words = failureInWords(code);
  const more = others === 0 ? '' : `, and ${others} more ${others === 1 ? 'list' : 'lists'}`;
  return resource === undefined ? words : `${resource}: ${words}${more}`;
}
