import type { Endpoint } from '../catalogue/endpoint.js';
import { type ErrorCode, MusterError } from '../core/errors.js';

/** What a response says around its records (SERVICE 2, paging envelopes). */
export interface Envelope {
  readonly data: readonly unknown[];
  readonly total?: number;
  readonly nextToken?: string;
}

type Members = { readonly [name: string]: unknown };

/** The members that lead from the response to its records; [] = the response is the array. */
export function dataPath({ envelope }: Pick<Endpoint, 'envelope'>): readonly string[] {
  if (envelope === 'none') return [];
  return envelope === '' ? ['data'] : [...envelope.split('.'), 'data'];
}

/**
 * Reads the envelope of a parsed response. Whatever is missing, of another type or in contradiction is an error and
 * never "the end of the list": throws MusterError `malformed_envelope` or `contradicting_envelope`. `ignoreTotals` reads the
 * records of a result envelope and leaves its totals unread, as if the answer were a bare array. `known`: how many records the
 * response held before they were cut out of it.
 */
export function readEnvelope(
  response: unknown,
  endpoint: Pick<Endpoint, 'resource' | 'envelope' | 'pager'>,
  ignoreTotals = false,
  known?: number,
): Envelope {
  const fail = (code: ErrorCode, problem: string): never => {
    throw new MusterError(code, `The answer of the list ${endpoint.resource} cannot be used as a page: ${problem}.`, {
      details: { resource: endpoint.resource },
    });
  };

  let holder = response;
  const path = dataPath(endpoint);
  path.forEach((name, depth) => {
    if (!isObject(holder) || !Object.hasOwn(holder, name))
      fail('malformed_envelope', `${path.slice(0, depth + 1).join('.')} is missing`);
    if (depth < path.length - 1) holder = (holder as Members)[name];
  });
  const data = path.length === 0 ? response : (holder as Members)['data'];
  if (!Array.isArray(data)) return fail('malformed_envelope', `${path.join('.') || 'the answer itself'} is not an array`);
  if (path.length === 0) return { data };

  const envelope = holder as Members;
  if (endpoint.pager.style === 'continuation') return readTokens(envelope, data, fail);
  return ignoreTotals ? { data } : readTotals(envelope, data, known ?? data.length, fail);
}

type Fail = (code: ErrorCode, problem: string) => never;

function readTotals(
  { totalRecords, totalDisplayRecords }: Members,
  data: readonly unknown[],
  count: number,
  fail: Fail,
): Envelope {
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
  return { data, total: totalRecords };
}

function readTokens({ hasNextPage, nextPageToken }: Members, data: readonly unknown[], fail: Fail): Envelope {
  if (typeof hasNextPage !== 'boolean') return fail('malformed_envelope', 'hasNextPage is missing or neither true nor false');
  if (nextPageToken !== null && typeof nextPageToken !== 'string') {
    return fail('malformed_envelope', 'nextPageToken is missing or neither a string nor null');
  }
  // Either of the two ends the list (SERVICE 4.3, rule 3).
  if (!hasNextPage || nextPageToken === null) return { data };
  if (nextPageToken === '') return fail('contradicting_envelope', 'hasNextPage is true, but nextPageToken is empty');
  // The token becomes a part of the checkpoint, and PostgreSQL keeps no NUL.
  if (nextPageToken.includes('\0')) return fail('malformed_envelope', 'nextPageToken holds a NUL');
  return { data, nextToken: nextPageToken };
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
