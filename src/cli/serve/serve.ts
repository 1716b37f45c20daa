import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { type Role, startApp } from '../../app.js';
import type { Config } from '../../config/config.js';
import { adminTokenPath } from '../../config/kept-secrets.js';
import { makeFolder } from '../../core/home.js';
import { createLogger, type Logger } from '../../observability/logger.js';

/** The longest stop, after the drain. A service that has not stopped by then ends with the process, which loses nothing. */
const STOP_LIMIT_MS = 14_000;

/** How long a process may live after its stop. */
const LINGER_MS = 500;

/** How long a cancelled start has to undo itself. Then the process ends, which is safe at any moment of a start. */
const CALLED_OFF_MS = 10_000;

/**
 * Runs `start` until SIGTERM or SIGINT, then stops what it started, which may take `drainSeconds` longer than other stops. A signal during the start cancels it through the AbortSignal. Ctrl-C
 * under npm delivers the signal twice, to the process group and by npm, so a second signal has no effect.
 */
export async function serveUntilSignal(
  start: (signal: AbortSignal) => Promise<{ stop(): Promise<void> }>,
  drainSeconds: number,
): Promise<void> {
  const stopping = new AbortController();
  let limit: NodeJS.Timeout | undefined;
  const signalled = new Promise<void>((resolve) => {
    const onSignal = () => {
      limit ??= setTimeout(giveUp, STOP_LIMIT_MS + drainSeconds * 1_000);
      stopping.abort();
      resolve();
    };
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      // The new listener is added first: without any listener, Node drops a signal that is not delivered yet.
      const earlier = process.listeners(signal);
      process.on(signal, onSignal);
      for (const listener of earlier) process.removeListener(signal, listener);
    }
  });
  const calledOff = signalled.then(() => sleep(CALLED_OFF_MS, undefined, { ref: false }));
  const started = await Promise.race([start(stopping.signal), calledOff]).catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });
  if (!started) process.exit(0);
  await signalled;
  await started.stop();
  clearTimeout(limit);
  // Everything has stopped, but a timer or socket of BullMQ may keep the process alive.
  setTimeout(() => process.exit(0), LINGER_MS).unref();
}

/** Ends a stop that hangs, for example without Redis. The exit code is 0, since nothing committed is lost. */
function giveUp(): never {
  console.error('muster: stopping took too long; nothing committed is lost, and the rest continues at the next start.');
  process.exit(0);
}

export function serveRole(config: Config, role: Role): Promise<void> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const drainSeconds = role === 'worker' ? 0 : config.drainSeconds; // only an API drains
  return serveUntilSignal(async (signal) => {
    if (Object.keys(config.providers).length === 0) {
      logger.warn(
        'no environment of the service is configured, so no company can be onboarded: set TEST_BASE_URL and the other TEST_… variables, or the PRODUCTION_… ones',
      );
    }
    const app = await startApp(config, new Set([role]), logger, signal);
    if (app.url) logger.info(`the admin API listens at ${app.url}`);
    if (app.url && !config.adminToken) logger.info(`the admin token is kept in ${adminTokenPath(config)}`);
    logger.info(`ready: ${role}`);
    return app;
  }, drainSeconds);
}

/** On a terminal the log goes to a file, so that it does not disturb the output for the person there. */
export function loggerBesideTerminal(config: Config): { logger: Logger; file?: string } {
  if (!process.stderr.isTTY) return { logger: createLogger({ level: config.logLevel, format: config.logFormat }) };
  makeFolder(config.home);
  const file = join(config.home, 'muster.log');
  return { logger: createLogger({ level: config.logLevel, destination: pino.destination({ dest: file, sync: true }) }), file };
}
