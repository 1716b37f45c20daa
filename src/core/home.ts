import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { chmod, link, readFile, stat, unlink, writeFile } from 'node:fs/promises';
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

/** Shorter ones could be guessed. Those that are generated here are longer. */
const LEAST_LENGTH = 16;

interface Keeping {
  readonly generate: () => string;
  /** Told where others than its owner could read the file until now. */
  readonly onExposed?: ((path: string) => void) | undefined;
}

/**
 * The secret in a file that only its owner may read; `generate` makes it where there is none. Two processes that start at once end up
 * with the same secret: the file appears whole, and the first process to put it there wins. Rights of others on the file are taken away, not
 * refused: some volumes hand them out anew at each start. Throws `invalid_configuration` where the secret can be neither read nor kept, is too
 * short, or cannot be closed to others.
 */
export async function keptSecret(path: string, { generate, onExposed }: Keeping): Promise<Secret> {
  const kept = await read(path, onExposed);
  if (kept) return kept;
  makeFolder(dirname(path));
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${generate()}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await unlink(draft);
  return (await read(path, onExposed)) as Secret;
}

async function read(path: string, onExposed: Keeping['onExposed']): Promise<Secret | undefined> {
  let text: string;
  try {
    text = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unusableHome(`${path} cannot be read`, error);
  }
  if (text.length < LEAST_LENGTH)
    throw new MusterError(
      'invalid_configuration',
      `MUSTER_HOME: the secret in ${path} has ${text.length} characters instead of ${LEAST_LENGTH} or more; put a longer one there, or delete the file, and a new one is made.`,
    );
  if (isExposed(await stat(path))) {
    await chmod(path, 0o600).catch((error: unknown) => {
      throw unusableHome(`others may read ${path}, and that cannot be changed`, error);
    });
    onExposed?.(path);
  }
  return new Secret(text);
}

/**
 * The secret in such a file, and whether others than its owner may read it; undefined where there is none. Makes and mends nothing. Throws
 * `invalid_configuration` where it cannot be read.
 */
export async function lookAtSecret(path: string): Promise<{ readonly secret: Secret; readonly isExposed: boolean } | undefined> {
  try {
    return { secret: new Secret((await readFile(path, 'utf8')).trim()), isExposed: isExposed(await stat(path)) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unusableHome(`${path} cannot be read`, error);
  }
}

function isExposed({ mode }: { readonly mode: number }): boolean {
  return (mode & 0o077) !== 0;
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
