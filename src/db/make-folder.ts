import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { MusterError } from '../core/errors.js';

/**
 * Makes MUSTER_HOME and the folders above it, one after the other: Node's own recursive way spins for ever, deaf to signals,
 * on file systems like /proc where nobody can make any. Throws `embedded_database_failed`.
 */
export function makeFolder(path: string): void {
  try {
    make(path);
  } catch (cause) {
    throw new MusterError(
      'embedded_database_failed',
      `The folder ${path} cannot be made (${(cause as NodeJS.ErrnoException).code}): set MUSTER_HOME to one that can.`,
      { cause },
    );
  }
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
