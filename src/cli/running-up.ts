import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { isProcessAlive, makeFolder } from '../core/home.js';
import type { Logger } from '../observability/logger.js';
import { CommandFailure } from './exit-code.js';

interface RunningUp {
  readonly pid: number;
  readonly url: string;
}

/** How long to wait for a response of a running Muster. */
const ANSWER_MS = 3_000;

/**
 * Throws if a `muster up` already serves this MUSTER_HOME: a second sandbox would not know the tokens of the first one, and every example
 * company would lose its authorization. The entry of a killed process does not count, since nothing answers at its address.
 */
export async function refuseSecondUp(config: Config): Promise<void> {
  const other = runningUp(config);
  if (!other || !(await isMusterAt(other.url))) return;
  throw new CommandFailure(
    `muster up already runs on this MUSTER_HOME (${config.home}): see ${other.url}/api/docs. ` +
      `Stop it first (process ${other.pid}), or set MUSTER_HOME to another folder.`,
  );
}

/** Whether a Muster, and no other program, answers at `url`. */
export async function isMusterAt(url: string): Promise<boolean> {
  try {
    return isMuster((await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) })).headers.get('x-service'));
  } catch {
    return false;
  }
}

/** Whether the header `x-service` of a response to /healthz comes from a Muster. */
export function isMuster(service: unknown): boolean {
  return service === 'muster';
}

/**
 * Records in MUSTER_HOME that this process serves it. Returns a function that removes the entry, unless a later process has replaced it.
 * With every secret set, MUSTER_HOME may be read-only; then commands need the address.
 */
export function announceUp(config: Config, url: string, logger: Logger): () => void {
  try {
    makeFolder(config.home);
    writeFileSync(place(config), JSON.stringify({ pid: process.pid, url } satisfies RunningUp));
  } catch (error) {
    logger.warn({ err: error }, `MUSTER_HOME cannot be written, so give commands the address: --url ${url}`);
  }
  return () => {
    if (runningUp(config)?.pid === process.pid) rmSync(place(config), { force: true });
  };
}

/** The `muster up` that serves this MUSTER_HOME, if its process still lives. */
export function runningUp(config: Config): RunningUp | undefined {
  try {
    const up = JSON.parse(readFileSync(place(config), 'utf8')) as RunningUp;
    return isProcessAlive(up.pid) ? up : undefined;
  } catch {
    return undefined;
  }
}

function place({ home }: Config): string {
  return join(home, 'up.json');
}
