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

/** Longest time in which a Muster answers that it is there. */
const ANSWER_MS = 3_000;

/**
 * Throws when a `muster up` serves this MUSTER_HOME already: a second sandbox would not know the tokens that the first one
 * gives, and cost every example company its authorization. The word of a killed process does not count, since nobody answers there.
 */
export async function refuseSecondUp(config: Config): Promise<void> {
  const other = runningUp(config);
  if (!other || !(await isMusterAt(other.url))) return;
  throw new CommandFailure(
    `muster up runs on this MUSTER_HOME already (${config.home}): see ${other.url}/api/docs. ` +
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

/** Whether the header `x-service` of an answer to /healthz is that of a Muster. */
export function isMuster(service: unknown): boolean {
  return service === 'muster';
}

/**
 * Leaves word that this process serves MUSTER_HOME. Returns how to take it back, which leaves the word of a later one alone. Where
 * nothing is kept in MUSTER_HOME, it may be a folder that nobody can write; then commands have to be told.
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

/** The `muster up` that serves this MUSTER_HOME, unless its process is gone. */
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
