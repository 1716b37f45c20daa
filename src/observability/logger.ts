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

/** The pool of `pg` gives errors of a connection its client: five thousand characters, and the key that cancels its statements. */
function serializeError(error: Error): unknown {
  if (!(error instanceof Error)) return error;
  const { client: _, ...rest } = pino.stdSerializers.errWithCause(error);
  return rest;
}
