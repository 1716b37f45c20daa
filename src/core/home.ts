import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { chmod, link, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { MusterError } from './errors.js';
import { Secret } from './secret.js';

/**
 * Makes MUSTER_HOME and the folders above it one by one, because Node's recursive mkdir loops forever, deaf to signals, on file systems
 * like /proc that allow no folders. Throws `invalid_configuration`, also if this user may not write there.
 */
export function makeFolder(path: string): void {
  try {
    make(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw unusableHome(`the folder ${path} cannot be made or written`, cause);
  }
}

/** Makes the error for a failure of the file system below MUSTER_HOME. `what` names the file and the problem. */
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
    // Another process may have made it first.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/** A shorter secret could be guessed. Generated secrets are longer. */
const LEAST_LENGTH = 16;

interface Keeping {
  readonly generate: () => string;
  /** Called if users other than the owner could read the file until now. */
  readonly onExposed?: ((path: string) => void) | undefined;
}

/**
 * Reads the secret from a file that only its owner may read, or makes it with `generate`. Two processes that start at once end up with the
 * same secret: the file appears whole, and the first process to put it there wins. Rights of other users are removed instead of refused,
 * because some volumes grant them again at each start. Throws `invalid_configuration` if the secret can be neither read nor stored, is too
 * short, or cannot be closed to other users.
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
 * Reads the secret without making or repairing anything; undefined if there is no file. `isExposed`: users other than the owner may read it.
 * Throws `invalid_configuration` if the file cannot be read.
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

/** Checks whether the process with this id still runs, also if it belongs to another user. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
