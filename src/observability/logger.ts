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
      serializers: { err: pino.stdSerializers.errWithCause, error: pino.stdSerializers.errWithCause },
      hooks: { streamWrite: redactLine },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}
