import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from './npm-environment.js';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];

/** `npm ci --omit=dev` in a checkout compiles, although it brings no declarations of types. */
export function tryCheckoutWithoutDevelopment(): void {
  withCopy((copy) => {
    npm(copy, 'ci', '--omit=dev', ...QUIET);
    if (existsSync(path.join(copy, 'node_modules/vitest')))
      throw new Error('--omit=dev has installed what only development needs');
    sees(copy, 0, /Usage: muster/, '--help');
  });
}

/** After `npm ci --ignore-scripts`, Muster names the command that compiles it, and that command does. */
export function tryCheckoutWithoutScripts(): void {
  withCopy((copy) => {
    npm(copy, 'ci', '--ignore-scripts', ...QUIET);
    sees(copy, 1, /npm run prepare/, '--help');
    npm(copy, 'run', 'prepare');
    sees(copy, 0, /Usage: muster/, '--help');
  });
}

/** What git knows, as a clone has it. */
function withCopy(work: (copy: string) => void): void {
  const copy = mkdtempSync(path.join(tmpdir(), 'muster-checkout-'));
  try {
    const listed = execFileSync('git', ['ls-files', '-z'], { cwd: checkout, encoding: 'utf8' });
    for (const file of listed.split('\0').filter((name) => name !== '' && existsSync(path.join(checkout, name))))
      cpSync(path.join(checkout, file), path.join(copy, file));
    work(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function npm(cwd: string, ...args: readonly string[]): void {
  console.log(`# npm ${args.filter((arg) => !QUIET.includes(arg)).join(' ')}`);
  execFileSync('npm', args, { cwd, env: bareEnvironment(), stdio: ['ignore', 'ignore', 'inherit'] });
}

function sees(cwd: string, wanted: number, text: RegExp, ...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(path.join(cwd, 'bin/muster'), args, {
    cwd,
    env: bareEnvironment(),
    encoding: 'utf8',
  });
  if (status !== wanted || !text.test(stdout + stderr))
    throw new Error(`bin/muster ${args.join(' ')} ended with ${status}, and printed:\n${stdout}${stderr}`);
}
