import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Endpoint } from '../catalogue/endpoint.js';
import { MusterError } from '../core/errors.js';
import type { TextSlice } from '../core/text-slice.js';
import { dataPath, noArray, readEnvelope } from './envelope-members.js';
import { KeyHashes, type PageHashes, type TextHashes } from './hashes.js';
import { MAX_DEPTH, recordScanner, type ScannedRecord, type Span, scanJson } from './json-scanner.js';
import type { Page } from './pager.js';
import { digestRecords } from './record-digests.js';
import { type UnstorableReason, unstorableReason } from './unstorable.js';

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

/** The records of a page that an earlier walk read. */
export interface KnownContent extends PageHashes {
  /** What the ledger calls it. */
  readonly id: bigint;
}

/** The answer that brought a page, so that the service can be asked whether it still is the answer (RFC 9110, 13.1.2). */
export interface KeptAnswer {
  /** What was asked: the base URL of the API and the PageInput, as JSON. */
  readonly request: string;
  readonly etag: string;
  readonly total?: number | undefined;
  readonly nextToken?: string | undefined;
}

export interface ReceivedPage extends Page {
  /** The records to be compared with the mirror: all that can be kept, but for those that are known to stand there as they are. */
  readonly records: readonly ReceivedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** Keys of all records: the id; of rejected ones `#` and a hash of the text, which no id looks like. Or the page that has the same. */
  readonly ids: readonly string[] | KnownContent;
  /** The page that is the same in everything. */
  readonly content?: KnownContent;
  /** The page with nothing left out of `records`; undefined where only the service has them. */
  readonly full?: (() => ReadPage) | undefined;
  /** What `records` and `rejected` may stand in: nobody else has this buffer. */
  readonly response?: Buffer | undefined;
  /** Undefined where the service gives no ETag. */
  readonly answer?: KeptAnswer | undefined;
  /** The record member taken for the id; absent when no record of the page carries a candidate. */
  readonly idField?: string;
  readonly texts: TextHashes;
  /** Which of them differ from those of page `ids`, where these are few (TextHashes.with): the ledger need not keep all of them again. */
  readonly changes?: Uint32Array | undefined;
}

/** A page that was read without regard to any other. */
export type ReadPage = ReceivedPage & { readonly ids: readonly string[] };

/** What of an endpoint says how its pages are written. */
export type PageShape = Pick<Endpoint, 'resource' | 'envelope' | 'id' | 'pager'>;

/** Bytes of an id: a row of a PostgreSQL index holds 2,700, and environment and company_id stand beside the id. */
const MAX_ID_BYTES = 2_000;
const EMPTY_ARRAY = Buffer.from('[]');
const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const NUMBER_STARTS = new Set(Buffer.from('-0123456789'));
const REJECTED_KEY = /^#[0-9a-f]{32}$/;

/**
 * Reads one page from a response. `idField` fixes the member that is the id; without it, the first candidate
 * of the endpoint that any record carries is taken. `ignoreTotals`: of a list that was caught lying about its totals.
 *
 * Throws MusterError `malformed_response` (no JSON in UTF-8), `malformed_envelope` or `contradicting_envelope`.
 */
export function readPage(response: Buffer, endpoint: PageShape, idField?: string, ignoreTotals = false): ReadPage {
  const bytes = withoutMark(response);
  const candidates = idField === undefined ? endpoint.id : [idField];
  const { array, isSuspicious } = scanned(bytes, endpoint, candidates);
  const { total, nextToken } = readEnvelope(
    JSON.parse(around(bytes, array).toString()),
    endpoint,
    ignoreTotals,
    array.records.length,
  );
  const n =
    idField === undefined ? candidates.findIndex((_, each) => array.records.some((record) => idAt(bytes, record, each))) : 0;
  const texts = digestRecords(bytes, array.records);

  const records: ReceivedRecord[] = [];
  const rejected: RejectedRecord[] = [];
  const ids: string[] = [];
  for (const [position, record] of array.records.entries()) {
    const { start, end } = record;
    const id = storableId(bytes, record, n, isSuspicious);
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
    records,
    rejected,
    ids,
    keys: KeyHashes.of(ids),
    texts,
    response,
    total,
    nextToken,
    ...(field === undefined ? {} : { idField: field }),
  };
}

/** Gives the id of the record at this index, and where its text ends; undefined where no record is that can be kept. */
export type ReadAt = (index: number) => { readonly id: string; readonly end: number } | undefined;

/** Reads single records of a page. */
export function recordReader(bytes: Buffer, endpoint: PageShape, idField: string): ReadAt {
  const scan = recordScanner(bytes, dataPath(endpoint), [idField]);
  return (index) => {
    const record = scan(index);
    if (!record || !isUtf8(bytes.subarray(index, record.end))) return undefined;
    const id = storableId(bytes, record, 0, record.isSuspicious);
    return typeof id === 'string' ? { id, end: record.end } : undefined;
  };
}

/** The response without the byte order mark that some servers put before it. */
export function withoutMark(response: Buffer): Buffer {
  return response[0] === 0xef && response[1] === 0xbb && response[2] === 0xbf ? response.subarray(3) : response;
}

/** What stands around the records: the answer with an empty array in their place. */
export function around(bytes: Buffer, { start, end }: Span): Buffer {
  return Buffer.concat([bytes.subarray(0, start), EMPTY_ARRAY, bytes.subarray(end)]);
}

function scanned(bytes: Buffer, endpoint: PageShape, members: readonly string[]) {
  const found = isUtf8(bytes) ? scanJson(bytes, dataPath(endpoint), members) : undefined;
  if (!found) {
    const { resource } = endpoint;
    // Not even a parser's message: it would quote the body.
    throw new MusterError(
      'malformed_response',
      `The answer of the list ${resource} is not JSON in UTF-8, or nested deeper than ${MAX_DEPTH} (${bytes.length} bytes). Check path and base URL of this list.`,
      { details: { resource, length: bytes.length } },
    );
  }
  const { array, isSuspicious } = found;
  if (!array) throw noArray(JSON.parse(bytes.toString()), endpoint);
  return { array, isSuspicious };
}

/** Where the value is that may be an id, by the place of its name among those looked for. */
function idAt(bytes: Buffer, { members }: ScannedRecord, n: number): Span | undefined {
  const value = members[n];
  return value && (bytes[value.start] === QUOTE || NUMBER_STARTS.has(bytes[value.start]!)) ? value : undefined;
}

/** The id of a record that can be kept, or why it cannot. */
function storableId(
  bytes: Buffer,
  record: ScannedRecord,
  n: number,
  isSuspicious: boolean,
): string | { readonly reason: RejectionReason } {
  const reason = isSuspicious ? unstorableReason(bytes.toString('utf8', record.start, record.end)) : undefined;
  return reason === undefined ? idOf(bytes, record, n) : { reason };
}

/** A string as decoded; a number as written, for JSON.parse would round 12345678901234567890. */
function idOf(bytes: Buffer, record: ScannedRecord, n: number): string | { readonly reason: RejectionReason } {
  if (bytes[record.start] !== OPEN_BRACE) return { reason: 'not_an_object' };
  const value = idAt(bytes, record, n);
  if (!value) return { reason: 'no_id' };
  const quotes = bytes[value.start] === QUOTE ? 1 : 0;
  const written = bytes.toString('utf8', value.start + quotes, value.end - quotes);
  const id = written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written;
  if (id === '') return { reason: 'no_id' };
  return isUsableId(id) ? id : { reason: 'unusable_id' };
}

/** Whether an index of the database can hold the id, and it does not look like the key of a record without one. */
export function isUsableId(id: string): boolean {
  if (id.length > MAX_ID_BYTES / 3 && Buffer.byteLength(id) > MAX_ID_BYTES) return false;
  return !REJECTED_KEY.test(id);
}

function rejectedKey(text: Buffer): string {
  return `#${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}
