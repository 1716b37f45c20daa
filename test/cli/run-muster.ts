import { type ChildProcess, execFile, fork, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, inject } from 'vitest';

export const MUSTER = fileURLToPath(new URL('../../bin/muster', import.meta.url));

/** A folder for MUSTER_HOME, gone after the test file. */
export const HOME = mkdtempSync(path.join(tmpdir(), 'muster-cli-'));
afterAll(removeHome);

export function makeHome(): void {
  mkdirSync(HOME, { recursive: true });
}

export function removeHome(): void {
  rmSync(HOME, { recursive: true, force: true });
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as one JSON object a line. */
  // oxlint-disable-next-line typescript/no-explicit-any
  json(): any[];
}

type Result = Pick<Outcome, 'code' | 'stdout' | 'stderr'>;
type Environment = Record<string, string>;

/** Whether no test of this run has started the command yet, in any of vitest's workers. */
function startsFirst(command = ''): boolean {
  try {
    writeFileSync(path.join(inject('startedCommands'), `command-${encodeURIComponent(command)}`), '', { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Runs a command to its end, with nothing of our environment but PATH; `input` is its standard input. The first run of each
 * command is a process of its own, as users have it, and so shows that it ends by itself. Those that follow share one in each of vitest's workers,
 * because to start a process takes longer than most commands; and so do those that ask a command for its help alone.
 */
export async function runMuster(args: readonly string[], env: Environment = {}, input = ''): Promise<Outcome> {
  const [command] = args;
  const all = { PATH: process.env.PATH ?? '', MUSTER_HOME: HOME, ...env };
  const isHelp = args.length > 1 && args.at(-1) === '--help';
  const isFirst = !isHelp && startsFirst(command);
  const result = await (isFirst ? runAlone(args, all, input) : runInHost(args, all, input));
  const json = () =>
    result.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  return { ...result, json };
}

async function runAlone(args: readonly string[], env: Environment, input: string): Promise<Result> {
  const child = spawn(process.execPath, [MUSTER, ...args], { env });
  const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
  // A command that does not read its input may be gone before it was written.
  child.stdin.on('error', () => {}).end(input);
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

let host: ChildProcess | undefined;
let sent = 0;

/** It ends with this process. */
function startHost(): ChildProcess {
  const started = fork(new URL('command-host.mjs', import.meta.url), { execArgv: [] }).setMaxListeners(0);
  started.unref();
  started.channel?.unref();
  return started;
}

function runInHost(args: readonly string[], env: Environment, input: string): Promise<Result> {
  host ??= startHost();
  const running = host;
  const number = ++sent;
  return new Promise((resolve, reject) => {
    const end = (code: number | null) =>
      reject(new Error(`The process of the commands ended (${code}) during: ${args.join(' ')}`));
    const receive = (result: Result & { number: number }) => {
      if (result.number !== number) return;
      running.off('message', receive).off('exit', end);
      resolve(result);
    };
    running.on('message', receive).on('exit', end);
    running.send({ number, args, env, input });
  });
}

/** Runs a command on a terminal of its own; all that it shows there. */
export async function onTerminal(command: string, env: Record<string, string> = {}): Promise<string> {
  const { stdout } = await promisify(execFile)('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm', MUSTER_HOME: HOME, ...env },
  });
  return stdout;
}
