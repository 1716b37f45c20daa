import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathWith } from '../node-binaries.js';
import { bareEnvironment } from './npm-environment.js';
import { withFolder } from './with-folder.js';

const START_SECONDS = 600;
const STOP_SECONDS = 60;

/** The first commands that the README names, as somebody types them who installed the package. */
const COMMANDS = ['--version', 'status', 'companies', 'doctor --json'];

/**
 * Installs a packed Muster into an empty folder with nothing set, under the given Node and its engine rules, starts everything, looks at it as a newcomer does, and
 * stops it as ^C does. Throws on the first thing that does not work.
 */
export function tryPackage(
  file: string,
  { node, flags = [] }: { readonly node: string; readonly flags?: readonly string[] },
): Promise<void> {
  return withFolder(async (outer) => {
    const folder = path.join(outer, 'empty');
    mkdirSync(folder);
    const env = bareEnvironment({ PATH: pathWith(node), PORT: '0' });
    const call = (program: string, ...args: readonly string[]) =>
      execFileSync(program, args, { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

    console.log(`# ${call('node', '--version').trim()}: npm install --engine-strict ${flags.join(' ')}`);
    call('npm', 'install', '--engine-strict', '--no-audit', '--no-fund', '--loglevel=error', ...flags, file);
    const superfluous = ['prisma', 'typescript', 'vitest'].filter((name) =>
      readdirSync(path.join(folder, 'node_modules')).includes(name),
    );
    if (superfluous.length > 0) throw new Error(`the package brings ${superfluous.join(', ')} along`);
    // Exports to S3 are part of the package, though the SDK is only loaded for them.
    const sdk = "import('@aws-sdk/client-s3').then(() => import('@aws-sdk/lib-storage'))";
    execFileSync('node', ['-e', sdk], { cwd: path.join(folder, 'node_modules/muster'), env, stdio: 'inherit' });

    await started(folder, env, 'npx muster up', async (up, output) => {
      for (const expected of ['Mirrored in', 'npx muster status', path.join(folder, '.muster/admin-token')])
        if (!output.includes(expected)) throw new Error(`muster up did not say "${expected}":\n${output}`);
      if (/failed/.test(output)) throw new Error(`a list failed:\n${output}`);
      for (const command of COMMANDS) {
        console.log(`# npx muster ${command}`);
        if (call('npx', 'muster', ...command.split(' ')).trim() === '') throw new Error(`muster ${command} printed nothing`);
      }
      // As a terminal does on ^C: every process of the group gets the signal. npx ends by it, whatever its command exits with.
      process.kill(-up.pid!, 'SIGINT');
    });
    await started(folder, env, 'node_modules/.bin/muster up', async (up) => {
      const exit = once(up, 'exit');
      up.kill('SIGTERM');
      const [code, signal] = (await exit) as [number | null, NodeJS.Signals | null];
      if (code !== 0) throw new Error(`muster up ended with ${code ?? signal} on SIGTERM`);
    });
    console.log('# works');
  });
}

/** Starts a command, hands it on once everything is mirrored, and sees all of its processes end after that. */
async function started(
  folder: string,
  env: NodeJS.ProcessEnv,
  command: string,
  work: (up: ChildProcess, output: string) => Promise<void>,
): Promise<void> {
  console.log(`# ${command}`);
  const log = path.join(folder, '../log');
  const [program = '', ...args] = command.split(' ');
  const up = spawn(program, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', openSync(log, 'w')] });
  try {
    await work(up, await firstMirror(up));
    await allEnded(folder);
  } catch (error) {
    console.error(readFileSync(log, 'utf8'));
    throw error;
  } finally {
    if (processesThatName(folder).length > 0) process.kill(-up.pid!, 'SIGKILL');
  }
}

async function allEnded(folder: string): Promise<void> {
  const end = performance.now() + STOP_SECONDS * 1000;
  let left: string[];
  while ((left = processesThatName(folder)).length > 0) {
    if (performance.now() > end) throw new Error(`processes are left after ${STOP_SECONDS} s:\n${left.join('\n')}`);
    await sleep(200);
  }
}

/** What `up` prints up to the list of what to try next, whose last line names ^C. */
async function firstMirror(up: ChildProcess): Promise<string> {
  let output = '';
  const impatience = setTimeout(() => process.kill(-up.pid!, 'SIGKILL'), START_SECONDS * 1000);
  try {
    for await (const text of up.stdout!.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      output += text as string;
      if (!output.includes('Ctrl-C stops everything')) continue;
      up.stdout!.resume();
      return output;
    }
  } finally {
    clearTimeout(impatience);
  }
  throw new Error(`muster up ended early:\n${output}`);
}

/** Command lines of this machine's processes that name the folder. */
function processesThatName(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return ''; // ended in between
      }
    })
    .filter((line) => line.includes(folder));
}
