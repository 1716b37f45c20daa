import { pino } from 'pino';
import { redactLine } from './redaction.js';

export type Logger = pino.Logger;

/**
 * The log: a JSON object a line, by default on standard error (standard output belongs to a command's answer).
 * Redaction works on the finished line, behind every serializer, child binding and error: nothing can go round it.
 */
export function createLogger(options: { level: string; destination?: pino.DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: serializeError, error: serializeError },
      hooks: { streamWrite: redactLine },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

function serializeError(error: unknown): unknown {
  return error instanceof Error ? withoutClient(pino.stdSerializers.errWithCause(error)) : error;
}

/** The pool of `pg` gives errors of a connection its client: five thousand characters, and the key that cancels its statements. */
function withoutClient(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return error;
  const { client: _, ...rest } = error as { client?: unknown; cause?: unknown; aggregateErrors?: unknown[] };
  if (rest.cause !== undefined) rest.cause = withoutClient(rest.cause);
  if (rest.aggregateErrors) rest.aggregateErrors = rest.aggregateErrors.map(withoutClient);
  return rest;
}
