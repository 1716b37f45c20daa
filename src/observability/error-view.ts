import { MusterError } from '../core/errors.js';

/** Members of an error that may be logged, besides name, message and stack: facts from a driver or the operating system. */
const ALLOWED = [
  'code',
  'errno',
  'syscall',
  'hostname',
  'address',
  'port',
  'severity',
  'schema',
  'table',
  'column',
  'constraint',
  'retryable',
] as const;

/** Limit for the chain of causes, which may be circular. */
const MOST_CAUSES = 8;

/**
 * An error and its causes for the log. Drivers attach anything to their errors, even connections and the arguments of a refused AUTH,
 * so only listed members are logged. The texts are not redacted yet.
 */
export function errorView(error: unknown, causesLeft = MOST_CAUSES): unknown {
  if (!(error instanceof Error)) return typeof error === 'object' ? undefined : error;
  const { constructor, name, message, stack, cause, errors } = error as Partial<AggregateError>;
  const nested = (other: unknown) => errorView(other, causesLeft - 1);
  const isFollowed = causesLeft > 0;
  return {
    type: constructor?.name || name,
    message,
    stack,
    ...Object.fromEntries(
      ALLOWED.map((member) => [member, (error as unknown as Record<string, unknown>)[member]]).filter(([, value]) =>
        isPlain(value),
      ),
    ),
    ...(error instanceof MusterError && { details: error.details }),
    ...(isFollowed && Array.isArray(errors) && { aggregateErrors: errors.map(nested) }),
    ...(isFollowed && cause !== undefined && { cause: nested(cause) }),
  };
}

/** The stacks of an error and its causes, for people. The text is not redacted yet. */
export function errorText(error: unknown, causesLeft = MOST_CAUSES): string {
  if (!(error instanceof Error)) return typeof error === 'object' ? 'an object that is no error' : String(error);
  const text = error.stack ?? String(error);
  return error.cause === undefined || causesLeft === 0 ? text : `${text}\nCaused by: ${errorText(error.cause, causesLeft - 1)}`;
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
