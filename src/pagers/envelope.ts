import { createHash } from 'node:crypto';
import type { Endpoint } from '../catalogue/endpoint.js';
import { MusterError } from '../core/errors.js';
import { dataPath, readEnvelope } from './envelope-members.js';
import type { Page } from './pager.js';
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

export interface ReceivedPage extends Page {
  readonly records: readonly ReceivedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** The record member taken for the id; absent when no record of the page carries a candidate. */
  readonly idField?: string;
}

/** Bytes of an id: a row of a PostgreSQL index holds 2,700, and environment and company_id stand beside the id. */
const MAX_ID_BYTES = 2_000;
const REJECTED_KEY = /^#[0-9a-f]{32}$/;
const BYTE_ORDER_MARK = 0xfeff;

/**
 * Reads one page from the text of a response. `idField` fixes the member that is the id; without it, the first candidate
 * of the endpoint that any record carries is taken. `ignoreTotals`: of a list that was caught lying about its totals.
 *
 * Throws MusterError `malformed_response` (no JSON), `malformed_envelope` or `contradicting_envelope`.
 */
export function readPage(response: string, endpoint: Endpoint, idField?: string, ignoreTotals = false): ReceivedPage {
  const text = response.charCodeAt(0) === BYTE_ORDER_MARK ? response.slice(1) : response;
  const parsed = parse(text, endpoint);
  const { data, total, nextToken } = readEnvelope(parsed, endpoint, ignoreTotals);
  const spans = elementSpans(text, dataStart(text, endpoint));
  const field = idField ?? endpoint.id.find((candidate) => data.some((record) => carries(record, candidate)));
  const isSuspicious = mayBeUnstorable(text);

  const records: ReceivedRecord[] = [];
  const rejected: RejectedRecord[] = [];
  const keys: string[] = [];
  for (const [position, { start, end }] of spans.entries()) {
    const recordText = text.slice(start, end);
    const id = idOf(data[position], recordText, field);
    const reason = (isSuspicious ? unstorableReason(recordText) : undefined) ?? (typeof id === 'string' ? undefined : id.reason);
    if (reason === undefined && typeof id === 'string') {
      records.push({ key: id, id, text: recordText, position });
      keys.push(id);
    } else if (reason !== undefined) {
      const key = rejectedKey(recordText);
      rejected.push({ key, text: recordText, position, reason });
      keys.push(key);
    }
  }
  return {
    records,
    rejected,
    keys,
    ...(total === undefined ? {} : { total }),
    ...(nextToken === undefined ? {} : { nextToken }),
    ...(field === undefined ? {} : { idField: field }),
  };
}

function parse(text: string, { resource }: Endpoint): unknown {
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

function dataStart(text: string, endpoint: Endpoint): number {
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
