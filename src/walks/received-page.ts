import { inTurns } from '../core/turns.js';
import type { LedgerEntry } from '../mirror/ledger-entry.js';
import type { KeyHashes } from '../pagers/key-hashes.js';
import { type Envelope, envelopeOf } from '../pagers/page-envelope.js';
import type { Page } from '../pagers/pager.js';
import { type PageFormat, type PageResponse, type ReceivedRecord, type RejectedRecord, readPage } from '../pagers/read-page.js';

/** The answer that brought a page, so that the service can be asked whether it still is the answer (RFC 9110, 13.1.2). */
export interface KeptResponse extends Envelope {
  /** What was asked: the base URL of the API and the PageInput, as JSON. */
  readonly request: string;
  readonly etag: string;
  /** As of the page. */
  readonly matched?: readonly string[] | undefined;
}

interface PageFacts extends Page {
  readonly keys: KeyHashes;
  readonly ledger: LedgerEntry;
  /** Undefined where the service gives no ETag, or nobody wants it. */
  readonly answer?: KeptResponse | undefined;
  /** Paths of the privacy rules that found a member in it; undefined where the list has no rules. */
  readonly matched?: readonly string[] | undefined;
  /** Its ETag came with another text before: the tags of the list say nothing. */
  readonly hasFalseEtag?: boolean | undefined;
}

interface PageRecords {
  /** The records to compare with the mirror. */
  readonly records: readonly ReceivedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** The record member taken for the id; absent when no record of the page carries a candidate. */
  readonly idField?: string | undefined;
  /** The memory that records stand in, which nobody else has. */
  readonly response?: Buffer | undefined;
}

/**
 * A page as a walk receives it:
 * - `full`: every record was read, and is compared with the mirror.
 * - `partial`: some records are known to stand in the mirror as they are; the others are compared.
 * - `unchanged`: the page was sent, and every record of it is known to stand in the mirror.
 * - `not-modified`: the service says that the page is as it was; every record of it is known to stand in the mirror.
 */
export type ReceivedPage =
  | (PageFacts & PageRecords & { readonly kind: 'full' | 'partial' })
  | (PageFacts & { readonly kind: 'unchanged' | 'not-modified' });

/** What of the page is to be compared with the mirror or kept aside. */
export function recordsOf(page: ReceivedPage): PageRecords {
  return 'records' in page ? page : { records: [], rejected: [] };
}

/** Reads every record of a page. Throws as readPage does. */
export async function readInFull(
  response: PageResponse,
  format: PageFormat,
  idField: string | undefined,
): Promise<ReceivedPage & { kind: 'full' }> {
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
    response: response.bytes,
    idField: read.idField,
  };
}
