import { type ErrorCode, MusterError } from '../core/errors.js';
import { membersAround, type Sign } from './around.js';
import { denialOfSuccess } from './denial.js';
import { noArrayAt } from './no-records.js';
import { describeSign } from './signs-of-more.js';

// The errors of answers that are no pages.

/** An answer of status 200 that is a failure by its own words: the service is asked again, as after any failure of it. */
export function successDenied(resource: string, denial: Sign): MusterError {
  return new MusterError(
    'success_denied',
    `The list ${resource} answered without records, and says itself that it failed: ${describeSign(denial)}. ` +
      `It is asked again later; if this means nothing, write fields: { ignore: [${denial.member}] } into the entry of this list.`,
    { details: { resource, member: denial.member } },
  );
}

/** The error of a parsed response that has no array where the list's entry says. */
export function noArray(response: unknown, resource: string, path: readonly string[]): MusterError {
  const denial = denialOfSuccess(membersAround(response, path.slice(0, -1)), () => false);
  if (denial) return successDenied(resource, denial);
  return unusablePage(resource, 'malformed_envelope', noArrayAt(response, path));
}

export function unusablePage(resource: string, code: ErrorCode, problem: string): MusterError {
  return new MusterError(code, `The answer of the list ${resource} cannot be used as a page: ${problem}.`, {
    details: { resource },
  });
}
