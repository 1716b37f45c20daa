import { inTurns } from '../core/turns.js';
import type { LedgerEntry } from '../mirror/ledger-entry.js';
import type { KeyHashes } from '../pagers/key-hashes.js';
import { type Envelope, envelopeOf } from '../pagers/page-envelope.js';
import type { Page } from '../pagers/pager.js';
import { type PageFormat, type PageResponse, type ReceivedRecord, type RejectedRecord, readPage } from '../pagers/read-page.js';

/** The response that brought a page, so that the service can be asked whether it still is its response (RFC 9110, 13.1.2). */
export interface KeptResponse extends Envelope {
  /** The base URL of the API and the PageInput, as JSON. */
  readonly request: string;
  readonly etag: string;
  /** Paths of privacy rules that found a member. */
  readonly matched?: readonly string[] | undefined;
}

/** A page as a walk receives it: its records have keys, and it is known which of them to compare with the mirror. */
export interface ReceivedPage extends Page {
  /**
   * - `full`: every record was read, and is compared with the mirror.
   * - `partial`: some records are known to be in the mirror as they are; the others are compared.
   * - `unchanged`: the page was sent, and every record of it is known to be in the mirror.
   * - `not-modified`: the service says that the page is as it was; every record of it is known to be in the mirror.
   */
  readonly kind: 'full' | 'partial' | 'unchanged' | 'not-modified';
  readonly keys: KeyHashes;
  readonly ledger: LedgerEntry;
  /** Undefined where the service gives no ETag, or the list uses none. */
  readonly answer?: KeptResponse | undefined;
  /** Paths of the privacy rules that found a member in it; undefined where the list has no rules. */
  readonly matched?: readonly string[] | undefined;
  /** Its ETag came with another text before: the tags of the list say nothing. */
  readonly hasFalseEtag?: boolean | undefined;
  /** The records to compare with the mirror. */
  readonly records: readonly ReceivedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** The record member taken for the id; absent when no record of the page carries a candidate. */
  readonly idField?: string | undefined;
}

/** Whether records of the page were read: of other pages every record is known to be in the mirror. */
export function isRead({ kind }: ReceivedPage): boolean {
  return kind === 'full' || kind === 'partial';
}

/** Reads every record of a page. Throws as readPage does. */
export async function readInFull(response: PageResponse, format: PageFormat, idField: string | undefined): Promise<ReceivedPage> {
  const page = await inTurns(readPage(response, format, idField));
  const { count, records, rejected, ids, keys, ...read } = page;
  return {
    kind: 'full',
    count,
    ...envelopeOf(page),
    keys,
    ledger: { kind: 'new', ids, keys: keys.words },
    records,
    rejected,
    idField: read.idField,
  };
}
