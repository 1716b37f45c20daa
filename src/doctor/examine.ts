import { setTimeout as sleep } from 'node:timers/promises';
import { ADVICE } from '../core/advice.js';
import { isMusterError } from '../core/errors.js';
import { sqlState } from '../db/connection/sql-state.js';
import { redactText } from '../observability/redaction.js';
import { type Check, type Finding, NotLookedAt, problem, warning } from './check.js';

/** One check may take so long. Each of its requests has a shorter limit, so that only a hanging check reaches this one. */
const LIMIT_MS = 30_000;

export interface Examined extends Finding {
  readonly check: string;
}

/**
 * Runs all checks at once, and yields the findings in the order of the checks. A check that fails or hangs does not affect the others.
 */
export async function* examine(checks: readonly Check[], limitMs = LIMIT_MS): AsyncGenerator<Examined> {
  const looks = checks.map((check) => ({ check, findings: look(check, limitMs) }));
  for (const { check, findings } of looks) {
    for (const { found, next, ...finding } of await findings) {
      yield { check: check.name, ...finding, found: redactText(found), ...(next !== undefined && { next: redactText(next) }) };
    }
  }
}

async function look(check: Check, limitMs: number): Promise<readonly Finding[]> {
  const limit = new AbortController();
  const late = sleep(limitMs, [tooLong(limitMs)], { signal: limit.signal });
  late.catch(() => {}); // called off
  try {
    return await Promise.race([check.look(), late]);
  } catch (error) {
    return [findingOf(error)];
  } finally {
    limit.abort();
  }
}

function tooLong(limitMs: number): Finding {
  return problem(
    `did not end within ${limitMs / 1_000} s`,
    'See whether the server that it asks answers at all, and look again.',
  );
}

function findingOf(error: unknown): Finding {
  if (error instanceof NotLookedAt) return error.finding;
  if (isMusterError(error, 'invalid_configuration')) return problem(error.message, 'Mend that, and look again.');
  if (isMusterError(error)) return problem(error.message, ADVICE[error.code]);
  const state = sqlState(error);
  // undefined_table, undefined_column, invalid_schema_name
  if (state === '42P01' || state === '42703' || state === '3F000')
    return warning(
      'not looked at: the database lacks tables or columns of this version',
      'Run `muster migrate`, and look again.',
    );
  const name = error instanceof Error ? error.constructor.name : typeof error;
  const what = state === undefined ? name : `SQLSTATE ${state}`;
  return problem(`could not be looked at (${what})`, 'Look again; if it stays so, report it.');
}
