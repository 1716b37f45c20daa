import { CommanderError } from 'commander';
import { isMusterError, type MusterError } from '../core/errors.js';

const FAILED = 1;
const BAD_USAGE = 2;

/** A command that ends with this exit code and, where there is one, this message. */
export class CommandFailure extends Error {
  readonly exitCode: typeof FAILED | typeof BAD_USAGE;

  constructor(message: string, options: { badUsage?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'CommandFailure';
    this.exitCode = options.badUsage ? BAD_USAGE : FAILED;
  }
}

/** Says on standard error what went wrong, and gives the exit code that stands for it. */
export function exitCodeOf(error: unknown): number {
  // Commander has said its own already; asking for help or for the version is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : BAD_USAGE;
  if (error instanceof CommandFailure) {
    if (error.message) console.error(`muster: ${error.message}`);
    return error.exitCode;
  }
  if (isMusterError(error)) {
    console.error(`muster: ${withCode(error)}`);
    return error.code === 'invalid_configuration' || error.code === 'invalid_catalogue' ? BAD_USAGE : FAILED;
  }
  console.error('muster: something failed that should not have:', error);
  return FAILED;
}

/** The code ends the first line: where there are more, they list faults. */
function withCode({ message, code }: MusterError): string {
  return message.replace(/$|(?=\n)/, ` [${code}]`);
}
