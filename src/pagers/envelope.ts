import { createHash } from 'node:crypto';
import type { Endpoint } from '../catalogue/endpoint.js';
import { MusterError } from '../core/errors.js';
import { dataPath, readEnvelope } from './envelope-members.js';
import type { Page } from './pager.js';
import { KeyHashes } from './hashes.js';
import { digestRecords } from './record-digests.js';
import { elementSpans, memberSpan, skipSpace } from './record-scanner.js';
import { mayBeUnstorable, type UnstorableReason, unstorableReason } from './unstorable.js';

/** A record as it was received. */
export interface ReceivedRecord {
  /** What the record is known by within its list; the id. */
  readonly key: string;
  /** A string as decoded, a number with its digits as written. */
  readonly id: string;
  /** Exactly the text that was received. */
  readonly text: string;
  /** Index in the page's data. */
  readonly position: number;
}

/** `unusable_id`: an id that no index of the database could hold, or that looks like the key of a record without id. */
export type RejectionReason = 'not_an_object' | 'no_id' | 'unusable_id' | UnstorableReason;

/** A record that cannot be kept. It makes the walk unverified, and never stops it. */
export interface RejectedRecord {
  /** `#` and a hash of the text; no id looks like it. */
  readonly key: string;
  readonly text: string;
  readonly position: number;
  readonly reason: RejectionReason;
}

/** The records of a page that an earlier walk read: all that is kept of them outside the database. */
export interface KnownContent {
  /** What the ledger calls it. */
  readonly id: bigint;
  readonly keys: KeyHashes;
  readonly texts: Uint32Array;
}

export interface ReceivedPage extends Page {
  /** The records to be compared with the mirror: all that can be kept, but for those that are known to stand there as they are. */
  readonly records: readonly ReceivedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** Keys of all records: the id, or a hash of the text where a record has none. Or the page that has the same. */
  readonly ids: readonly string[] | KnownContent;
  /** The page that is the same in everything. */
  readonly content?: KnownContent;
  /** The page with nothing left out of `records`. */
  readonly full?: (() => ReadPage) | undefined;
  /** The record member taken for the id; absent when no record of the page carries a candidate. */
  readonly idField?: string;
  /** Hashes and lengths of the records' texts (record-digests.ts). */
  readonly texts: Uint32Array;
  /** SHA-256 of the text of the array of records. */
  readonly digest: Buffer;
}

/** A page that was read without regard to any other. */
export type ReadPage = ReceivedPage & { readonly ids: readonly string[] };

/** What of an endpoint says how its pages are written. */
export type PageShape = Pick<Endpoint, 'resource' | 'envelope' | 'id' | 'pager'>;

/** Bytes of an id: a row of a PostgreSQL index holds 2,700, and environment and company_id stand beside the id. */
const MAX_ID_BYTES = 2_000;
const REJECTED_KEY = /^#[0-9a-f]{32}$/;

/**
 * Reads one page from a response in UTF-8. `idField` fixes the member that is the id; without it, the first candidate
 * of the endpoint that any record carries is taken. `ignoreTotals`: of a list that was caught lying about its totals.
 *
 * Throws MusterError `malformed_response` (no JSON), `malformed_envelope` or `contradicting_envelope`.
 */
export function readPage(response: Buffer, endpoint: PageShape, idField?: string, ignoreTotals = false): ReadPage {
  const bytes = withoutMark(response);
  const text = bytes.toString();
  const parsed = parse(text, endpoint);
  const { data, total, nextToken } = readEnvelope(parsed, endpoint, ignoreTotals);
  const dataAt = dataStart(text, endpoint);
  const spans = elementSpans(text, dataAt);
  const field = idField ?? endpoint.id.find((candidate) => data.some((record) => carries(record, candidate)));
  const { digest, texts } = digestRecords(bytes, text, dataAt, spans);
  const isSuspicious = mayBeUnstorable(text);

  const records: ReceivedRecord[] = [];
  const rejected: RejectedRecord[] = [];
  const ids: string[] = [];
  for (const [position, { start, end }] of spans.entries()) {
    const recordText = text.slice(start, end);
    const id = idOf(data[position], recordText, field);
    const reason = (isSuspicious ? unstorableReason(recordText) : undefined) ?? (typeof id === 'string' ? undefined : id.reason);
    if (reason === undefined && typeof id === 'string') {
      records.push({ key: id, id, text: recordText, position });
      ids.push(id);
    } else if (reason !== undefined) {
      const key = rejectedKey(recordText);
      rejected.push({ key, text: recordText, position, reason });
      ids.push(key);
    }
  }
  return {
    records,
    rejected,
    ids,
    keys: KeyHashes.of(ids),
    texts,
    digest,
    ...(total === undefined ? {} : { total }),
    ...(nextToken === undefined ? {} : { nextToken }),
    ...(field === undefined ? {} : { idField: field }),
  };
}

/** The response without the byte order mark that some servers put before it. */
export function withoutMark(response: Buffer): Buffer {
  return response[0] === 0xef && response[1] === 0xbb && response[2] === 0xbf ? response.subarray(3) : response;
}

function parse(text: string, { resource }: PageShape): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, so it goes neither into the message nor into `cause`.
    throw new MusterError(
      'malformed_response',
      `The answer of the list ${resource} is not JSON (${text.length} characters). Check path and base URL of this list.`,
      { details: { resource, length: text.length } },
    );
  }
}

function dataStart(text: string, endpoint: PageShape): number {
  let at = skipSpace(text, 0);
  for (const name of dataPath(endpoint)) at = memberSpan(text, at, name)?.start ?? at;
  return at;
}

function carries(record: unknown, candidate: string): boolean {
  const value = member(record, candidate);
  return typeof value === 'string' || typeof value === 'number';
}

function member(record: unknown, name: string): unknown {
  return isRecord(record) && Object.hasOwn(record, name) ? record[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function idOf(record: unknown, text: string, field: string | undefined): string | { readonly reason: RejectionReason } {
  if (!isRecord(record)) return { reason: 'not_an_object' };
  const value = field === undefined ? undefined : member(record, field);
  if (value === '' || (typeof value !== 'string' && typeof value !== 'number')) return { reason: 'no_id' };
  const id = typeof value === 'string' ? value : numberAsWritten(text, field as string);
  return isUsable(id) ? id : { reason: 'unusable_id' };
}

/** JSON.parse would round 12345678901234567890. */
function numberAsWritten(recordText: string, field: string): string {
  const span = memberSpan(recordText, 0, field);
  return span === undefined ? '' : recordText.slice(span.start, span.end);
}

function isUsable(id: string): boolean {
  if (id.length > MAX_ID_BYTES / 3 && Buffer.byteLength(id) > MAX_ID_BYTES) return false;
  return !REJECTED_KEY.test(id);
}

function rejectedKey(text: string): string {
  return `#${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}
