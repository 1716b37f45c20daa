import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathWith } from '../node-binaries.js';
import { bareEnvironment } from './npm-environment.js';
import { withFolder } from './with-folder.js';

const START_SECONDS = 180;
const STOP_SECONDS = 15;

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

    console.log('# npx muster up');
    const up = spawn('npx', ['muster', 'up'], { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const output = await firstMirror(up);
      for (const expected of ['Mirrored in', 'npx muster status', path.join(folder, '.muster/admin-token')])
        if (!output.includes(expected)) throw new Error(`muster up did not say "${expected}":\n${output}`);
      if (/failed/.test(output)) throw new Error(`a list failed:\n${output}`);
      for (const command of COMMANDS) {
        console.log(`# npx muster ${command}`);
        if (call('npx', 'muster', ...command.split(' ')).trim() === '') throw new Error(`muster ${command} printed nothing`);
      }
    } finally {
      await interrupt(up);
    }
    if (up.exitCode !== 0) throw new Error(`muster up ended with ${up.exitCode ?? up.signalCode} on ^C`);
    const left = processesThatName(folder);
    if (left.length > 0) throw new Error(`muster up left processes behind:\n${left.join('\n')}`);
    console.log(`# works`);
  });
}

/** What `up` prints up to the list of what to try next, whose last line names ^C. */
async function firstMirror(up: ChildProcess): Promise<string> {
  let output = '';
  const impatience = setTimeout(() => process.kill(-up.pid!, 'SIGKILL'), START_SECONDS * 1000);
  try {
    for await (const text of up.stdout!.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      output += text as string;
      if (output.includes('Ctrl-C stops everything')) return output;
    }
  } finally {
    clearTimeout(impatience);
  }
  throw new Error(`muster up ended early:\n${output}`);
}

/** As a terminal does: every process of the group gets the signal. */
async function interrupt(up: ChildProcess): Promise<void> {
  if (up.exitCode !== null || up.signalCode !== null) return;
  up.stdout!.resume();
  const exit = once(up, 'exit');
  process.kill(-up.pid!, 'SIGINT');
  const impatience = setTimeout(() => process.kill(-up.pid!, 'SIGKILL'), STOP_SECONDS * 1000);
  await exit;
  clearTimeout(impatience);
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
