import { type ChildProcess, spawn } from 'node:child_process';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { HANGS_MS } from './wait-for.js';

const MUSTER = fileURLToPath(new URL('../../bin/muster', import.meta.url));

export interface TestProcess {
  readonly pid: number;
  /** What it wrote so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** Resolves at its end, with everything it wrote received. */
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** The first match in either stream, now or later; rejects when the process ends or the time is up before. */
  waitForOutput(pattern: RegExp): Promise<RegExpMatchArray>;
  kill(signal: NodeJS.Signals): void;
  /** Signals its whole process group, as Ctrl-C in a terminal does. */
  killGroup(signal: NodeJS.Signals): void;
}

const started = new Set<ChildProcess>();

afterAll(killStarted);
process.on('exit', killStarted);

/** Kills what the test file has started. */
export function killStarted(): void {
  for (const child of started) signalGroup(child, 'SIGKILL');
  started.clear();
}

/**
 * Runs ./bin/muster as users do: the build must be fresh. Nothing of our environment but PATH and HOME goes along. Its whole
 * process group is killed at the end of the test file at the latest.
 */
export function startMuster(args: readonly string[], env: Record<string, string> = {}): TestProcess {
  return startNode([MUSTER, ...args], env);
}

/** The same for any script: arguments as for `node`. */
export function startNode(args: readonly string[], env: Record<string, string> = {}): TestProcess {
  return start(process.execPath, args, process.cwd(), env);
}

/** The same for a line of a shell. */
export function startShell(line: string, cwd: string, env: Record<string, string> = {}): TestProcess {
  return start('sh', ['-c', line], cwd, env);
}

function start(program: string, args: readonly string[], cwd: string, env: Record<string, string>): TestProcess {
  const child = spawn(program, args, {
    detached: true,
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.add(child);
  const output = { stdout: '', stderr: '' };
  const listeners = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
      for (const listener of listeners) listener();
    });
  }
  const exit = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.on('error', reject);
    const closed = new Promise<void>((done) => void child.on('close', () => done()));
    // Not `close` alone: a grandchild may hold the output open. Behind the pause whatever has come meanwhile is read, however long a turn took.
    const paused = () => sleep(500).then(() => nextTurn());
    child.on('exit', (code, signal) => void Promise.race([closed, paused()]).then(() => resolve({ code, signal })));
  });

  return {
    pid: child.pid ?? 0,
    get stdout() {
      return output.stdout;
    },
    get stderr() {
      return output.stderr;
    },
    exit,
    kill: (signal) => void child.kill(signal),
    killGroup: (signal) => signalGroup(child, signal),
    waitForOutput: (pattern) =>
      new Promise((resolve, reject) => {
        const fail = (why: string) => {
          end();
          reject(new Error(`${why} before it wrote ${String(pattern)}:\n${output.stdout}\n${output.stderr}`));
        };
        const look = () => {
          const match = pattern.exec(output.stdout) ?? pattern.exec(output.stderr);
          if (!match) return;
          end();
          resolve(match);
        };
        const timer = setTimeout(() => fail(`${HANGS_MS} ms passed`), HANGS_MS);
        const end = () => {
          clearTimeout(timer);
          listeners.delete(look);
        };
        listeners.add(look);
        void exit.then(({ code, signal }) => fail(`The process ended (${signal ?? code})`), reject);
        look();
      }),
  };
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid) process.kill(-pid, signal);
  } catch {
    // It has just ended.
  }
}
