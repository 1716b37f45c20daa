import { CommanderError } from 'commander';
import { isMusterError } from '../core/errors.js';
import { explainDatabaseError } from '../db/connection/sql-state.js';
import { errorText } from '../observability/error-view.js';
import { redactText } from '../observability/redaction.js';
import { callsAsCommands } from './calls-as-commands.js';

const FAILED = 1;
const BAD_USAGE = 2;

/** Ends a command with a message and exit code 1. */
export class CommandFailure extends Error {}

/** Ends a command with a message and exit code 2. */
export class UsageFailure extends CommandFailure {}

/** Prints the error on standard error and returns its exit code. */
export function exitCodeOf(thrown: unknown): number {
  const error = explainDatabaseError(thrown);
  // Commander has printed its own message already. Asking for help or for the version is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : BAD_USAGE;
  if (error instanceof CommandFailure) {
    console.error(`muster: ${error.message}`);
    return error instanceof UsageFailure ? BAD_USAGE : FAILED;
  }
  if (isMusterError(error)) {
    // The code ends the first line; further lines list faults.
    console.error(`muster: ${callsAsCommands(error.message).replace(/$|(?=\n)/, ` [${error.code}]`)}`);
    return error.code === 'invalid_configuration' || error.code === 'invalid_catalogue' ? BAD_USAGE : FAILED;
  }
  console.error(`muster: an unexpected error occurred: ${redactText(errorText(error))}`);
  return FAILED;
}
