import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The version that must run side by side with this one: the commit of the last release, 0.2.0, since not every clone has tags. Change it with each release. */
const VERSION_BEFORE = '3114afa6369f2a05c80e4fb96df3a7599db9eaec';

/** Faults of that version that only itself could have mended. Empty the list when the version changes. */
export const KNOWN_FAULTS: readonly RegExp[] = [];

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));

interface PackageLock {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}

/** A built checkout of the version before, in a folder of its own. */
export interface EarlierCheckout {
  readonly folder: string;
  remove(): void;
}

/**
 * Builds the version before from the history of this checkout. It uses the installed packages if they include all of its own in the same
 * versions, and installs its own otherwise. Throws if the history does not have it. `UPGRADE_FROM` names a folder with another version, which is built.
 */
export function checkOutVersionBefore(): EarlierCheckout {
  const built = process.env['UPGRADE_FROM'];
  if (built !== undefined) return { folder: built, remove: () => undefined };
  requireHistory();
  const folder = mkdtempSync(path.join(tmpdir(), 'muster-before-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const archive = path.join(folder, 'sources.tar');
    git('archive', '--format=tar', `--output=${archive}`, VERSION_BEFORE);
    execFileSync('tar', ['-xf', archive, '-C', folder]);
    rmSync(archive);
    if (hasPackagesOf(folder)) {
      symlinkSync(path.join(CHECKOUT, 'node_modules'), path.join(folder, 'node_modules'));
      run(folder, 'npx', '--no-install', 'prisma', 'generate');
      run(folder, 'npm', 'run', 'build');
    } else run(folder, 'npm', 'ci', '--no-audit', '--no-fund'); // which also generates and builds
    if (!existsSync(path.join(folder, 'dist/cli/main.js')))
      throw new Error(`${VERSION_BEFORE} was built without dist/cli/main.js`);
    return { folder, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function requireHistory(): void {
  try {
    git('cat-file', '-e', `${VERSION_BEFORE}^{commit}`);
  } catch {
    throw new Error(
      `This checkout's history does not have ${VERSION_BEFORE}, the version that is upgraded from. In a shallow clone, run ` +
        '`git fetch --unshallow --tags` first. A copy without .git cannot run these tests.',
    );
  }
}

/** Whether each package that the folder's lock names is installed here in the same version. */
function hasPackagesOf(folder: string): boolean {
  const [theirs, ours] = [folder, CHECKOUT].map(
    (root) => (JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as PackageLock).packages,
  ) as [PackageLock['packages'], PackageLock['packages']];
  return Object.entries(theirs).every(([name, { version }]) => name === '' || ours[name]?.version === version);
}

function git(...args: string[]): void {
  execFileSync('git', args, { cwd: CHECKOUT, stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Runs a command silently; its output is in the error if it fails. */
function run(folder: string, command: string, ...args: string[]): void {
  try {
    execFileSync(command, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(' ')} failed in the version before:\n${stdout}\n${stderr}`, { cause: error });
  }
}
