import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { chmod, link, readFile, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { MusterError } from './errors.js';
import { Secret } from './secret.js';

/**
 * Makes MUSTER_HOME and the folders above it, one after the other. Node's own recursive mkdir spins for ever, deaf to signals, on file
 * systems like /proc where nobody can make a folder. Throws `invalid_configuration`, also where this user may not write.
 */
export function makeFolder(path: string): void {
  try {
    make(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw unusableHome(`the folder ${path} cannot be made or written`, cause);
  }
}

/** An error for failures of the file system below MUSTER_HOME. `what` says which file cannot be used, and how. */
export function unusableHome(what: string, cause: unknown): MusterError {
  return new MusterError(
    'invalid_configuration',
    `MUSTER_HOME: ${what} (${(cause as NodeJS.ErrnoException).code}); set it to a folder of this user, or give that one to this user.`,
    { cause },
  );
}

function make(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) make(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have been faster.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/**
 * The secret in a file that only its owner may read; `generate` makes it where there is none. Two processes that start at once end up
 * with the same secret: the file appears whole, and the first process to put it there wins. Throws `invalid_configuration` where the
 * secret can be neither read nor kept.
 */
export async function keptSecret(path: string, generate: () => string): Promise<Secret> {
  const kept = await read(path);
  if (kept) return kept;
  makeFolder(dirname(path));
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${generate()}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await unlink(draft);
  return (await read(path)) as Secret;
}

async function read(path: string): Promise<Secret | undefined> {
  try {
    return new Secret((await readFile(path, 'utf8')).trim());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unusableHome(`${path} cannot be read`, error);
  }
}

/** Whether a process with this id, left in a file of MUSTER_HOME, still runs. It may belong to another user. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
