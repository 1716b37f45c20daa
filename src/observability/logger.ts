import { pino } from 'pino';
import { errorView } from './error-view.js';
import { prettyLines } from './pretty-lines.js';
import { redactLine } from './redaction.js';

export type Logger = pino.Logger;

export const LOG_FORMATS = ['auto', 'json', 'pretty'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface LoggerOptions {
  readonly level: string;
  /** Of standard error; a destination of its own always gets JSON. */
  readonly format?: LogFormat;
  readonly destination?: pino.DestinationStream;
}

/**
 * The log: a JSON object a line, by default on standard error (standard output belongs to a command's answer), where a person on a terminal
 * gets the same for reading. Redaction works on the finished line, behind every serializer, child binding and error, and before anything is made
 * of the line: nothing can go round it.
 */
export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: withErrorViews },
      // What the formatter has viewed already comes by here again, and what a child was made with comes by here alone.
      serializers: { err: viewed, error: viewed },
      hooks: { streamWrite: redactLine },
    },
    options.destination ?? standardError(options.format),
  );
}

/** Written before the call returns, in either format: what a process says last is not lost with it. */
function standardError(format: LogFormat = 'auto'): pino.DestinationStream {
  const lines = pino.destination({ fd: 2, sync: true });
  const isTerminal = process.stderr.isTTY;
  return format === 'pretty' || (format === 'auto' && isTerminal) ? prettyLines(lines, { colors: isTerminal }) : lines;
}

const viewed = (value: unknown): unknown => (value instanceof Error ? errorView(value) : value);

/** An error that stands under another name than `err` would be written with every member that it has. */
function withErrorViews(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, viewed(value)]));
}
