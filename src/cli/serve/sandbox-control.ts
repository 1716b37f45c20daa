import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config/config.js';
import { isProcessAlive, makeFolder } from '../../core/home.js';
import { withoutSlash } from '../../core/own-address.js';
import type { Sandbox } from '../../sandbox/sandbox.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { runningUp } from '../running-up.js';

interface RunningSandbox {
  readonly pid: number;
  readonly url: string;
  readonly token: string;
}

/** An active lesson, as the sandbox describes it. */
export interface BegunLessonModel {
  readonly lesson: string;
  readonly company_id: string;
  readonly company: string;
  readonly list: string | null;
  readonly until: string | null;
}

/** How long to wait for a response of the sandbox. */
const ANSWER_MS = 10_000;

/**
 * Records in MUSTER_HOME, readable by its owner alone, the address and control token of this process's sandbox. The entry of another
 * running sandbox stays. Returns a function that removes the entry.
 */
export function announceSandbox(config: Config, { url, controlToken }: Sandbox): () => void {
  if (runningSandbox(config)) return () => {};
  const own: RunningSandbox = { pid: process.pid, url: withoutSlash(url), token: controlToken.reveal() };
  makeFolder(config.home);
  rmSync(place(config), { force: true });
  writeFileSync(place(config), JSON.stringify(own), { mode: 0o600, flag: 'wx' });
  return () => {
    if (runningSandbox(config)?.pid === process.pid) rmSync(place(config), { force: true });
  };
}

/** The sandbox recorded in this MUSTER_HOME, if its process still lives. */
export function runningSandbox(config: Config): RunningSandbox | undefined {
  try {
    const sandbox = JSON.parse(readFileSync(place(config), 'utf8')) as RunningSandbox;
    return isProcessAlive(sandbox.pid) ? sandbox : undefined;
  } catch {
    return undefined;
  }
}

/** Calls the running sandbox. The failures that it throws say what to do next, above all if a real service is configured instead. */
export async function askSandbox<T>(config: Config, method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
  const sandbox = runningSandbox(config);
  if (!sandbox) throw noSandbox(config);
  const headers = { authorization: `Bearer ${sandbox.token}`, ...(body && { 'content-type': 'application/json' }) };
  const options = { method, headers, body: body ? JSON.stringify(body) : null, signal: AbortSignal.timeout(ANSWER_MS) };
  const response = await fetch(`${sandbox.url}${path}`, options).catch((cause: unknown) => {
    throw new CommandFailure(`The sandbox at ${sandbox.url} does not answer: start Muster again.`, { cause });
  });
  const result: unknown = await response.json().catch(() => undefined);
  if (response.ok) return result as T;
  const { message = 'which is not how the sandbox answers' } = (result ?? {}) as { message?: string };
  if (response.status === 400 || response.status === 404) throw new UsageFailure(message);
  throw new CommandFailure(`The sandbox at ${sandbox.url} answered ${response.status}: ${message}`);
}

function noSandbox(config: Config): CommandFailure {
  const configured = Object.keys(config.providers);
  const up = runningUp(config);
  if (configured.length > 0)
    return new UsageFailure(
      `Lessons need the built-in sandbox, but a service is configured here (${configured.join(', ')}). ` +
        'Unset the PRODUCTION_… and TEST_… variables, and run `npm start`, preferably with another MUSTER_HOME.',
    );
  if (up)
    return new CommandFailure(
      `Lessons need the built-in sandbox, but the Muster at ${up.url} mirrors another service. ` +
        'Run another one with `npm start`, with other MUSTER_HOME and PORT, and without PRODUCTION_… and TEST_… variables.',
    );
  return new CommandFailure(
    `No sandbox runs on this MUSTER_HOME (${config.home}): start one with \`npm start\`, or set MUSTER_HOME to its folder.`,
  );
}

function place({ home }: Config): string {
  return join(home, 'sandbox-control.json');
}
