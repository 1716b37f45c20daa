import { isUtf8 } from 'node:buffer';
import { atOnce, BYTES_A_TURN, nextTurn } from '../core/turns.js';
import { arrayStart, scanJson } from '../pagers/json-scanner.js';
import { type Span, skipSpace } from '../pagers/json-text.js';
import { KeyHashes } from '../pagers/key-hashes.js';
import type { Envelope } from '../pagers/page-envelope.js';
import {
  around,
  type PageFormat,
  type PageResponse,
  type ReadAt,
  type ReceivedRecord,
  recordReader,
  withoutMark,
} from '../pagers/read-page.js';
import type { Baseline, BaselinePage } from './baseline.js';
import { CHUNK, endOfRow, putRow } from './row-hashes.js';

/** Bytes of a response in which its array of records must begin for the page to be recognized. */
const HEAD_BYTES = 4_096;
const COMMA = 0x2c;
const CLOSE_BRACKET = 0x5d;

/** A page that holds the records of one of the baseline's, in its order. */
export interface RecognizedPage extends Envelope {
  readonly page: BaselinePage;
  /** The records whose texts are others, and the row hashes of all as they are now; undefined where no text is another. */
  readonly changed?: { readonly records: readonly ReceivedRecord[]; readonly rowHashes: Uint32Array } | undefined;
}

/**
 * Recognizes a page of the baseline, so that its cost follows what changed: only records whose text is another are parsed, and what
 * is around them. Undefined where the page holds other records, and where anything about the response is unusual: reading all of it
 * will tell what.
 */
export async function recognize(
  baseline: Baseline,
  { bytes: response, headers, url }: PageResponse,
  format: PageFormat,
  idField: string,
): Promise<RecognizedPage | undefined> {
  const { pager } = format;
  if (pager.readsLastRecord) return undefined;
  const bytes = withoutMark(response);
  const start = arrayStart(bytes.subarray(0, HEAD_BYTES), pager.dataPath);
  // A guess; a wrong one is not where the last record ends.
  const end = bytes.lastIndexOf(CLOSE_BRACKET) + 1;
  if (start === undefined || end <= start) return undefined;
  try {
    const records = await readRecords(baseline, bytes, { start, end }, recordReader(bytes, format, idField));
    if (!records) return undefined;
    const rest = around(bytes, { start, end });
    if (!isUtf8(rest)) return undefined;
    // Where another array follows the first one there, the last one counts.
    if (atOnce(scanJson(rest, pager.dataPath, []))?.array?.start !== start) return undefined;
    const count = records.page.keys.length;
    const parsed = { rest: JSON.parse(rest.toString()), headers, url, count, lastRecord: () => undefined };
    return { ...pager.readEnvelope(parsed, format.ignoreTotals), ...records };
  } catch {
    return undefined;
  }
}

/** The records of the array, if a page of the baseline has them in that order. */
async function readRecords(
  baseline: Baseline,
  bytes: Buffer,
  array: Span,
  readAt: ReadAt,
): Promise<Pick<RecognizedPage, 'page' | 'changed'> | undefined> {
  let at = skipSpace(bytes, array.start + 1);
  const first = readAt(at);
  const page = baseline.beginningWith(KeyHashes.of(first ? [first.id] : []));
  if (!page) return undefined;
  let changes: ChangedRows | undefined;
  let from = at;
  for (let n = 0; n < page.keys.length; n += CHUNK) {
    if (n > 0) {
      if (bytes[at] !== COMMA) return undefined;
      at = skipSpace(bytes, at + 1);
    }
    let end = endOfRow(bytes, at, array.end, page.chunks, n / CHUNK);
    if (end === undefined) {
      await baseline.readRowHashes();
      changes ??= new ChangedRows(page, baseline.rowHashesOf(page)!, bytes, array.end, readAt);
      end = changes.readChunk(n, at);
      if (end === undefined) return undefined;
    }
    at = skipSpace(bytes, end);
    if (at - from < BYTES_A_TURN) continue;
    await nextTurn();
    from = at;
  }
  if (at !== array.end - 1) return undefined;
  return { page, changed: changes };
}

/** The records of a page whose texts are others than the baseline had. */
class ChangedRows {
  readonly records: ReceivedRecord[] = [];
  /** The row hashes of the page as it is now. */
  readonly rowHashes: Uint32Array;
  readonly #page: BaselinePage;
  readonly #bytes: Buffer;
  readonly #limit: number;
  readonly #readAt: ReadAt;

  /** All records end before `limit`. */
  constructor(page: BaselinePage, rowHashes: Uint32Array, bytes: Buffer, limit: number, readAt: ReadAt) {
    this.#page = page;
    this.rowHashes = rowHashes.slice();
    this.#bytes = bytes;
    this.#limit = limit;
    this.#readAt = readAt;
  }

  /** Reads the chunk of records from record `first` on, which begins at `start`. Where it ends; undefined where it has other records. */
  readChunk(first: number, start: number): number | undefined {
    const bytes = this.#bytes;
    const { length } = this.#page.keys;
    const last = Math.min(first + CHUNK, length) - 1;
    let end: number | undefined = start;
    for (let n = first, at = start; ; n += 1) {
      end = endOfRow(bytes, at, this.#limit, this.rowHashes, n) ?? this.#readRecord(n, at);
      if (end === undefined || n === last) break;
      at = skipSpace(bytes, end);
      if (bytes[at] !== COMMA) return undefined;
      at = skipSpace(bytes, at + 1);
    }
    if (end !== undefined) putRow(this.rowHashes, length + first / CHUNK, bytes, start, end);
    return end;
  }

  #readRecord(n: number, start: number): number | undefined {
    const read = this.#readAt(start);
    if (!read || !this.#page.keys.isKey(n, read.id)) return undefined;
    putRow(this.rowHashes, n, this.#bytes, start, read.end);
    // Apart from the response, which is large and need not wait for what little of it is written.
    const source = Buffer.from(this.#bytes.subarray(start, read.end));
    this.records.push({ id: read.id, source, start: 0, end: source.length, position: n });
    return read.end;
  }
}
