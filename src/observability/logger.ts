import { createRequire } from 'node:module';
import { pino } from 'pino';
import type { prettyFactory } from 'pino-pretty';
import { errorView } from './error-view.js';
import { redactLine } from './redaction.js';

export type Logger = pino.Logger;

export const LOG_FORMATS = ['auto', 'json', 'pretty'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface LoggerOptions {
  readonly level: string;
  /** Format on standard error. Another destination always gets JSON. */
  readonly format?: LogFormat;
  readonly destination?: pino.DestinationStream;
}

/**
 * The log: one JSON object per line, by default on standard error, because standard output belongs to a command's result. On a terminal the
 * lines are formatted for people. Redaction works on the finished line, after all serializers and child bindings and before any formatting,
 * so that nothing can bypass it.
 */
export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: withErrorViews },
      // The formatter does not see the bindings of child loggers, so errors in them are converted here.
      serializers: { err: viewed, error: viewed },
      hooks: { streamWrite: redactLine },
    },
    options.destination ?? standardError(options.format),
  );
}

/** Writes synchronously in either format, so that the last lines of a process are not lost. */
function standardError(format: LogFormat = 'auto'): pino.DestinationStream {
  const lines = pino.destination({ fd: 2, sync: true });
  const isTerminal = process.stderr.isTTY;
  return format === 'pretty' || (format === 'auto' && isTerminal) ? prettyLines(lines, { colors: isTerminal }) : lines;
}

const viewed = (value: unknown): unknown => (value instanceof Error ? errorView(value) : value);

/** Without it, an error under a name other than `err` would be logged with all its members. */
function withErrorViews(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, viewed(value)]));
}

/** Loaded only for terminals, because it takes some milliseconds. */
const load = () => createRequire(import.meta.url)('pino-pretty') as { readonly prettyFactory: typeof prettyFactory };

/** Control characters that a terminal could obey, escaped as in JSON or raw. Line feeds and tabs are kept. */
const CONTROLS = /\\u00(?:0[0-8bcef]|1[0-9a-f]|7f|[89][0-9a-f])|[\u007f-\u009f]/gi;

/**
 * Writes each JSON line of a log to `out`, formatted for people. Uses only the formatter of pino-pretty, because its stream writes later and would lose
 * the last lines of a process. Removes control characters, which a text of the service may hold.
 */
function prettyLines(out: pino.DestinationStream, { colors }: { readonly colors: boolean }): pino.DestinationStream {
  const format = load().prettyFactory({ colorize: colors, translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
  return { write: (line) => out.write(format(line.replace(CONTROLS, '\\ufffd')) ?? '') };
}
