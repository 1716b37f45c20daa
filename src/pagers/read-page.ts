import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { MusterError } from '../core/errors.js';
import type { TextSlice } from '../core/text-slice.js';
import { BYTES_A_TURN, ITEMS_A_TURN } from '../core/turns.js';
import { IdReader, membersRead } from './id-reader.js';
import { jsonFault } from './json-fault.js';
import {
  type FitMade,
  recordScanner,
  type ScannedArray,
  type ScannedRecord,
  type ScannedText,
  scanJson,
} from './json-scanner.js';
import { MAX_DEPTH, type Span } from './json-text.js';
import { KeyHashes } from './key-hashes.js';
import { noRecordsAt } from './no-records.js';
import type { Envelope } from './page-envelope.js';
import type { Pager } from './pager.js';
import type { NoRecords } from './parsed-response.js';
import { type UnstorableReason, unstorableReason } from './unstorable.js';
import { noArray } from './unusable-page.js';

/** A record, and exactly the text that was received. */
export interface ReceivedRecord extends TextSlice {
  /** A string as decoded, a number with its digits as written. */
  readonly id: string;
  /** Index in the page's data. */
  readonly position: number;
}

/** `unusable_id`: an id that no index of the database could hold, or that looks like the key of a record without id. */
export type RejectionReason = 'not_an_object' | 'no_id' | 'unusable_id' | UnstorableReason;

/** A record that cannot be kept. It makes the walk unverified, and never stops it. */
export interface RejectedRecord extends TextSlice {
  readonly position: number;
  readonly reason: RejectionReason;
}

/** Bytes received, which should be a page. */
export interface PageResponse {
  readonly bytes: Buffer;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The address that was asked. */
  readonly url: string;
  /** Status 204: there is no body, and so no record. */
  readonly isNoContent?: boolean | undefined;
  /** The places of its records, and in them of the members that may be their ids, where an earlier scan has found them. */
  readonly scanned?: ScannedText | undefined;
  /** Is told what its records take in the heap. */
  readonly fit?: FitMade | undefined;
}

/** How the pages of a list are read. */
export interface PageFormat {
  readonly resource: string;
  /** Candidates for the record's id (id-candidate.ts). */
  readonly id: readonly string[];
  readonly pager: Pick<Pager, 'dataPath' | 'readEnvelope' | 'readsLastRecord'>;
  /** The list was caught contradicting its totals: they are left unread. */
  readonly ignoreTotals: boolean;
}

/** A page whose records have been found, with their keys. */
export interface ReadPage extends Envelope {
  readonly count: number;
  /** The body in which the records are places, without a byte order mark. */
  readonly bytes: Buffer;
  readonly array: ScannedArray;
  readonly records: readonly ReceivedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** The keys of all records: their ids; for rejected ones `#` and a hash of the text, which no id looks like. */
  readonly ids: readonly string[];
  readonly keys: KeyHashes;
  /** The candidate taken for the id; absent when no record of the page carries a candidate. */
  readonly idField?: string;
}

/** Most bytes of an id: a row of a PostgreSQL index holds 2,700, environment and company_id included. */
const MAX_ID_BYTES = 2_000;
/** Bytes around the records that are parsed at once. */
const MOST_AROUND = 4 * 1024 * 1024;
const EMPTY_ARRAY = Buffer.from('[]');
const OPEN_BRACE = 0x7b;
const REJECTED_KEY = /^#[0-9a-f]{32}$/;

/**
 * Reads all of a page, in portions. `idField` fixes the candidate that is the id; without it, the first candidate that any record carries is taken.
 *
 * Throws MusterError `malformed_response` (no JSON in UTF-8), `malformed_envelope`, `contradicting_envelope`, `response_too_large`, and what `fit` throws.
 */
export function* readPage(response: PageResponse, format: PageFormat, idField?: string): Generator<void, ReadPage> {
  const bytes = withoutMark(response.bytes);
  const known = idField === undefined || format.id.includes(idField) ? response.scanned : undefined;
  const candidates = known || idField === undefined ? format.id : [idField];
  const { array, isSuspicious, noRecords } = response.isNoContent
    ? nothingIn(bytes, 'no-content')
    : yield* scanned(bytes, format, membersRead(candidates), known, response.fit);
  const idReader = new IdReader(bytes, candidates);
  const envelope = readAround(response, bytes, array, format, noRecords);
  const n = idField === undefined ? yield* idReader.firstCarried(array.records) : candidates.indexOf(idField);

  const records: ReceivedRecord[] = [];
  const rejected: RejectedRecord[] = [];
  const ids: string[] = [];
  let from = array.start;
  for (const [position, record] of array.records.entries()) {
    const { start, end } = record;
    if (end - from >= BYTES_A_TURN || position % ITEMS_A_TURN === ITEMS_A_TURN - 1) {
      yield;
      from = end;
    }
    const id = storableId(bytes, record, idReader.valueAt(record, n), isSuspicious);
    if (typeof id === 'string') {
      records.push({ id, source: bytes, start, end, position });
      ids.push(id);
    } else {
      rejected.push({ ...id, source: bytes, start, end, position });
      ids.push(rejectedKey(bytes.subarray(start, end)));
    }
  }
  const field = candidates[n];
  return {
    count: ids.length,
    bytes,
    array,
    records,
    rejected,
    ids,
    keys: yield* KeyHashes.inPortions(ids),
    ...envelope,
    ...(field === undefined ? {} : { idField: field }),
  };
}

function readAround(
  response: PageResponse,
  bytes: Buffer,
  array: ScannedArray,
  format: PageFormat,
  noRecords: NoRecords | undefined,
): Envelope {
  const { headers, url } = response;
  const lastRecord = () => {
    const last = array.records.at(-1)!;
    return JSON.parse(bytes.toString('utf8', last.start, last.end));
  };
  const text = noRecords ? bytes : around(bytes, array);
  if (text.length > MOST_AROUND) throw tooMuchAround(format.resource, text.length);
  const rest: unknown = noRecords === 'no-content' ? undefined : JSON.parse(text.toString());
  const parsed = { rest, headers, url, count: array.records.length, noRecords, lastRecord };
  return format.pager.readEnvelope(parsed, format.ignoreTotals);
}

function tooMuchAround(resource: string, length: number): MusterError {
  const [stands, most] = [length, MOST_AROUND].map((bytes) => Math.ceil(bytes / 1024 / 1024));
  return new MusterError(
    'response_too_large',
    `Around the records of the list ${resource} stand ${stands} MB; ${most} MB are read at most. Have the catalogue ask for less of it, or for smaller pages.`,
    { details: { resource } },
  );
}

/** Gives the id of the record at this index, and where its text ends; undefined where there is no record that can be kept. */
export type ReadAt = (index: number) => { readonly id: string; readonly end: number } | undefined;

/** Reads single records of a page. */
export function recordReader(bytes: Buffer, { pager }: Pick<PageFormat, 'pager'>, idField: string): ReadAt {
  const scan = recordScanner(bytes, pager.dataPath, membersRead([idField]));
  const idReader = new IdReader(bytes, [idField]);
  return (index) => {
    const record = scan(index);
    if (!record || !isUtf8(bytes.subarray(index, record.end))) return undefined;
    const id = storableId(bytes, record, idReader.valueAt(record, 0), record.isSuspicious);
    return typeof id === 'string' ? { id, end: record.end } : undefined;
  };
}

/** The response without the byte order mark that some servers put before it. */
export function withoutMark(response: Buffer): Buffer {
  return response[0] === 0xef && response[1] === 0xbb && response[2] === 0xbf ? response.subarray(3) : response;
}

/** The text around the records: the response with an empty array in their place. */
export function around(bytes: Buffer, { start, end }: Span): Buffer {
  return Buffer.concat([bytes.subarray(0, start), EMPTY_ARRAY, bytes.subarray(end)]);
}

function* scanned(
  bytes: Buffer,
  { resource, pager }: PageFormat,
  members: readonly string[],
  known: ScannedText | undefined,
  fit: FitMade | undefined,
) {
  const found = isUtf8(bytes) ? (known ?? (yield* scanJson(bytes, pager.dataPath, members, fit))) : undefined;
  if (!found) {
    // A parser's own message would quote the body.
    const fault = isUtf8(bytes) ? jsonFault(bytes) : undefined;
    const where = fault === undefined ? '' : `, from byte ${fault} on`;
    throw new MusterError(
      'malformed_response',
      `The answer of the list ${resource} is not JSON in UTF-8, or nested deeper than ${MAX_DEPTH}${where} (${bytes.length} bytes). Check path and base URL of this list.`,
      { details: { resource, length: bytes.length } },
    );
  }
  const { array, isSuspicious } = found;
  if (array) return { array, isSuspicious, noRecords: undefined };
  const parsed: unknown = bytes.length > MOST_AROUND ? undefined : JSON.parse(bytes.toString());
  const noRecords = noRecordsAt(parsed, pager.dataPath);
  if (noRecords === undefined) throw noArray(parsed, resource, pager.dataPath);
  return nothingIn(bytes, noRecords);
}

/** A response without an array of records. */
function nothingIn({ length }: Buffer, noRecords: NoRecords) {
  return { array: { start: length, end: length, records: [] }, isSuspicious: false, noRecords };
}

/** The id of a record that can be kept, or why it cannot. */
function storableId(
  bytes: Buffer,
  record: ScannedRecord,
  id: string | undefined,
  isSuspicious: boolean,
): string | { readonly reason: RejectionReason } {
  const reason = isSuspicious ? unstorableReason(bytes.toString('utf8', record.start, record.end)) : undefined;
  return reason === undefined ? idOf(bytes, record, id) : { reason };
}

function idOf(bytes: Buffer, { start }: Span, id: string | undefined): string | { readonly reason: RejectionReason } {
  if (bytes[start] !== OPEN_BRACE) return { reason: 'not_an_object' };
  if (id === undefined || id === '') return { reason: 'no_id' };
  return isUsableId(id) ? id : { reason: 'unusable_id' };
}

/** The values of these candidates that a record has; none of a text that is no record. */
export function idValues({ source, start, end }: TextSlice, candidates: readonly string[]): Map<string, string> {
  const bytes = source.subarray(0, end);
  const record = source[start] === OPEN_BRACE ? recordScanner(bytes, [], membersRead(candidates))(start) : undefined;
  const idReader = new IdReader(bytes, candidates);
  const values = new Map<string, string>();
  for (const [n, candidate] of candidates.entries()) {
    const value = record && idReader.valueAt(record, n);
    if (value !== undefined) values.set(candidate, value);
  }
  return values;
}

/** Whether an index of the database can hold the id, and it does not look like the key of a record without one. */
export function isUsableId(id: string): boolean {
  if (id.length > MAX_ID_BYTES / 3 && Buffer.byteLength(id) > MAX_ID_BYTES) return false;
  return !REJECTED_KEY.test(id);
}

/** The key of a record without a usable id. */
export function rejectedKey(text: Buffer): string {
  return `#${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}
