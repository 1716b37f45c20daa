import type { Endpoint } from '../catalogue/endpoint.js';
import { type ErrorCode, MusterError } from '../core/errors.js';

/** What a response says around its records. */
export interface Envelope {
  readonly total?: number | undefined;
  readonly nextToken?: string | undefined;
}

type ListShape = Pick<Endpoint, 'resource' | 'envelope' | 'pager'>;
type Members = { readonly [name: string]: unknown };

/** The members that lead from the response to its records; [] = the response is the array. */
export function dataPath({ envelope }: Pick<Endpoint, 'envelope'>): readonly string[] {
  if (envelope === 'none') return [];
  return envelope === '' ? ['data'] : [...envelope.split('.'), 'data'];
}

/**
 * Reads the envelope of a parsed response that has an array, of `count` records, where the endpoint says. Whatever is missing, of
 * another type or in contradiction is an error and never "the end of the list": throws MusterError `malformed_envelope` or
 * `contradicting_envelope`. `ignoreTotals` leaves the totals of a result envelope unread, as if the answer were a bare array.
 */
export function readEnvelope(response: unknown, endpoint: ListShape, ignoreTotals: boolean, count: number): Envelope {
  const path = dataPath(endpoint);
  if (path.length === 0) return {};
  const envelope = path.slice(0, -1).reduce((holder, name) => holder[name] as Members, response as Members);
  const fail: Fail = (code, problem) => {
    throw unusable(endpoint, code, problem);
  };
  if (endpoint.pager.style === 'continuation') return readTokens(envelope, fail);
  return ignoreTotals ? {} : readTotals(envelope, count, fail);
}

/** The error of a parsed response that has no array where the endpoint says. */
export function noArray(response: unknown, endpoint: ListShape): MusterError {
  const path = dataPath(endpoint);
  let holder = response;
  for (const [depth, name] of path.entries()) {
    if (!isObject(holder) || !Object.hasOwn(holder, name))
      return unusable(endpoint, 'malformed_envelope', `${path.slice(0, depth + 1).join('.')} is missing`);
    holder = holder[name];
  }
  return unusable(endpoint, 'malformed_envelope', `${path.join('.') || 'the answer itself'} is not an array`);
}

function unusable({ resource }: ListShape, code: ErrorCode, problem: string): MusterError {
  return new MusterError(code, `The answer of the list ${resource} cannot be used as a page: ${problem}.`, {
    details: { resource },
  });
}

type Fail = (code: ErrorCode, problem: string) => never;

function readTotals({ totalRecords, totalDisplayRecords }: Members, count: number, fail: Fail): Envelope {
  if (!isCount(totalRecords)) return fail('malformed_envelope', 'totalRecords is missing or no whole number of 0 or more');
  if (totalDisplayRecords !== undefined && !isCount(totalDisplayRecords)) {
    return fail('malformed_envelope', 'totalDisplayRecords is no whole number of 0 or more');
  }
  if (totalDisplayRecords !== undefined && totalDisplayRecords !== count) {
    return fail('contradicting_envelope', `totalDisplayRecords is ${totalDisplayRecords}, but data holds ${count}`);
  }
  if (totalRecords < count) {
    return fail('contradicting_envelope', `totalRecords is ${totalRecords}, but data alone holds ${count}`);
  }
  return { total: totalRecords };
}

function readTokens({ hasNextPage, nextPageToken, totalRecords }: Members, fail: Fail): Envelope {
  if (typeof hasNextPage !== 'boolean') return fail('malformed_envelope', 'hasNextPage is missing or neither true nor false');
  if (nextPageToken !== null && typeof nextPageToken !== 'string') {
    return fail('malformed_envelope', 'nextPageToken is missing or neither a string nor null');
  }
  // A token list need not say how many records it has; where it does, that is held against it.
  const totals = isCount(totalRecords) ? { total: totalRecords } : {};
  // Either of the two ends the list.
  if (!hasNextPage || nextPageToken === null) return totals;
  if (nextPageToken === '') return fail('contradicting_envelope', 'hasNextPage is true, but nextPageToken is empty');
  // The token becomes a part of the checkpoint, in which PostgreSQL keeps neither.
  if (/[\0\p{Surrogate}]/u.test(nextPageToken))
    return fail('malformed_envelope', 'nextPageToken holds a NUL or half of a surrogate pair');
  return { ...totals, nextToken: nextPageToken };
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
