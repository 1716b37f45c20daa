import { createRequire } from 'node:module';
import type { DestinationStream } from 'pino';
import type { prettyFactory } from 'pino-pretty';

/** Loaded only for terminals, because it takes some milliseconds. */
const load = () => createRequire(import.meta.url)('pino-pretty') as { readonly prettyFactory: typeof prettyFactory };

/** Control characters that a terminal could obey, escaped as in JSON or raw. Line feeds and tabs are kept. */
const CONTROLS = /\\u00(?:0[0-8bcef]|1[0-9a-f]|7f|[89][0-9a-f])|[\u007f-\u009f]/gi;

/**
 * Writes each JSON line of a log to `out`, formatted for people. Uses only the formatter of pino-pretty, because its stream writes later and would lose
 * the last lines of a process. Removes control characters, which a text of the service may hold.
 */
export function prettyLines(out: DestinationStream, { colors }: { readonly colors: boolean }): DestinationStream {
  const format = load().prettyFactory({ colorize: colors, translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
  return { write: (line) => out.write(format(line.replace(CONTROLS, '\\ufffd')) ?? '') };
}
