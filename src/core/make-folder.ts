import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { MusterError } from './errors.js';

/**
 * Makes MUSTER_HOME and the folders above it, one after the other: Node's own recursive way spins for ever, deaf to signals,
 * on file systems like /proc where nobody can make any. Throws `invalid_configuration`, also for one that is not ours to write.
 */
export function makeFolder(path: string): void {
  try {
    make(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw unusableHome(`the folder ${path} cannot be made or written`, cause);
  }
}

/** For errors of the file system below MUSTER_HOME; `what` says what cannot be done with which file. */
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
