import { MusterError } from '../core/errors.js';

/** What of an error may be logged beside its name, message and stack: facts that a driver or the operating system states of a failure. */
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

/** Deeper causes are left out; it also ends a circle. */
const MOST_CAUSES = 8;

/**
 * An error as the log has it, causes likewise. Drivers hang whatever they have on their errors, connections and the arguments of a
 * refused AUTH among it: so a list says what is logged, and not what is left out. Texts are still to be scrubbed.
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

/** Its stack and those of its causes, for a person to read. Still to be scrubbed. */
export function errorText(error: unknown, causesLeft = MOST_CAUSES): string {
  if (!(error instanceof Error)) return typeof error === 'object' ? 'an object that is no error' : String(error);
  const text = error.stack ?? String(error);
  return error.cause === undefined || causesLeft === 0 ? text : `${text}\nCaused by: ${errorText(error.cause, causesLeft - 1)}`;
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
