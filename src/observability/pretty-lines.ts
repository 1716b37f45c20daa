import { createRequire } from 'node:module';
import type { DestinationStream } from 'pino';
import type { prettyFactory } from 'pino-pretty';

/** Only who reads on a terminal needs it, and it takes some milliseconds to load. */
const load = () => createRequire(import.meta.url)('pino-pretty') as { readonly prettyFactory: typeof prettyFactory };

/** What a terminal could take for an order, be it written as JSON writes it or as it is. Line feeds and tabs may stay. */
const CONTROLS = /\\u00(?:0[0-8bcef]|1[0-9a-f]|7f|[89][0-9a-f])|[\u007f-\u009f]/gi;

/**
 * Writes each JSON line of a log to `out` for a person to read. pino-pretty's own stream would hand lines on later, and lose those under way at the
 * end of the process: so its formatter alone is used. A text of the service may hold orders to a terminal, which are taken out.
 */
export function prettyLines(out: DestinationStream, { colors }: { readonly colors: boolean }): DestinationStream {
  const format = load().prettyFactory({ colorize: colors, translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
  return { write: (line) => out.write(format(line.replace(CONTROLS, '\\ufffd')) ?? '') };
}
