import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const INSTALL_MS = 280_000;

/**
 * The folder of programs of a virtual environment beside a requirements.txt, in which all that it names is installed, unless it is there already. One
 * process installs, and the others wait for it. Throws with what to do where that fails.
 */
export async function pythonEnvironment(requirements: string): Promise<string> {
  const digest = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = join(dirname(requirements), '.venv', digest);
  const done = join(folder, '.done');
  const lock = `${folder}.lock`;
  mkdirSync(dirname(folder), { recursive: true });
  while (!existsSync(done)) {
    if (!takeLock(lock)) {
      await sleep(200);
      continue;
    }
    try {
      await install(requirements, folder);
      writeFileSync(done, '');
    } finally {
      rmdirSync(lock);
    }
  }
  return join(folder, 'bin');
}

/** False while another process has it. One that has it for longer than an installation may take was killed. */
function takeLock(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > 2 * INSTALL_MS) rmdirSync(lock);
    return false;
  }
}

async function install(requirements: string, folder: string): Promise<void> {
  const venv = await runProgram('python3', ['-m', 'venv', '--clear', folder], process.env, INSTALL_MS);
  if (venv.code !== 0)
    throw new Error(`A virtual environment needs python3 and its venv (apt install python3-venv):\n${venv.output}`);
  // Without a network it says so after half a minute.
  const limits = ['--timeout', '10', '--retries', '1', '--disable-pip-version-check', '--no-input', '--only-binary', ':all:'];
  const pip = await runProgram(
    join(folder, 'bin/python'),
    ['-m', 'pip', 'install', '--quiet', ...limits, '-r', requirements],
    process.env,
    INSTALL_MS,
  );
  if (pip.code !== 0)
    throw new Error(
      `${requirements} is installed from PyPI, which this machine does not reach, or not as it should:\n${pip.output}`,
    );
}

/**
 * Runs a program to its end, or until the limit: milliseconds, or a signal that ends it. What it prints on both of its outputs. A program that
 * cannot be started has no code, nor has one that was ended.
 */
export function runProgram(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  limit: number | AbortSignal,
  cwd = tmpdir(),
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    let output = '';
    const ending = typeof limit === 'number' ? { timeout: limit } : { signal: limit };
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], ...ending });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.on('error', ({ message }) => resolve({ code: null, output: `${output}\n${message}` }));
    child.on('close', (code, signal) => resolve({ code, output: signal ? `${output}\nended by ${signal}` : output }));
  });
}
