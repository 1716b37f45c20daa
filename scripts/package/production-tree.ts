import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { npmEnvironment } from './npm-environment.js';

/**
 * Hands a folder to `work` that has a checkout's manifest and lock without all that only development needs; nothing is installed in it.
 * `npm … --omit=dev` is not enough: it keeps packages that are a development dependency here and an optional peer of some dependency, such as
 * `prisma`. Asks no registry, since the lock has everything.
 */
export function withProductionTree<T>(checkout: string, work: (folder: string) => T): T {
  const outer = mkdtempSync(path.join(tmpdir(), 'muster-production-'));
  // npm names the tree after its folder.
  const folder = path.join(outer, 'muster');
  try {
    mkdirSync(folder);
    const {
      devDependencies: _,
      scripts: __,
      ...manifest
    } = JSON.parse(readFileSync(path.join(checkout, 'package.json'), 'utf8')) as Readonly<Record<string, unknown>>;
    writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    copyFileSync(path.join(checkout, 'package-lock.json'), path.join(folder, 'package-lock.json'));
    const quiet = ['--ignore-scripts', '--offline', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['install', '--package-lock-only', ...quiet], { cwd: folder, env: npmEnvironment(), stdio: 'pipe' });
    return work(folder);
  } finally {
    rmSync(outer, { recursive: true, force: true });
  }
}
