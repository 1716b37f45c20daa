import type { KnownContent, ReadAt, ReceivedPage, ReceivedRecord } from './envelope.js';
import { CHANGE_WORDS, RUN, textsOf } from './hashes.js';
import { skipSpace } from './json-scanner.js';
import { endOfText, hashOf } from './record-digests.js';

const COMMA = 0x2c;
/** The most changes that are kept in the place of a page's texts, as a share of these: more take longer to read and to write again. */
const CHANGED_AT_MOST = 1 / 4;

/** The records of a page whose text is another than in the page `before`, which holds the same ones. Its hashes have been read. */
export class ChangedRecords {
  readonly #before: KnownContent;
  readonly #bytes: Buffer;
  readonly #limit: number;
  readonly #readAt: ReadAt;
  /** What TextHashes.with takes. */
  readonly #changes: number[] = [];
  readonly #records: ReceivedRecord[] = [];

  /** All records end before `limit`. */
  constructor(before: KnownContent, bytes: Buffer, limit: number, readAt: ReadAt) {
    this.#before = before;
    this.#bytes = bytes;
    this.#limit = limit;
    this.#readAt = readAt;
  }

  /** Reads the run of records from record `first` on, which begins at `start`. Where it ends; undefined where it has other records. */
  readRun(first: number, start: number): number | undefined {
    const bytes = this.#bytes;
    const { length } = this.#before.keys;
    const last = Math.min(first + RUN, length) - 1;
    let end: number | undefined = start;
    for (let n = first, at = start; ; n += 1) {
      end = endOfText(bytes, at, this.#limit, this.#before.texts.words, n) ?? this.#readRecord(n, at);
      if (end === undefined || n === last) break;
      at = skipSpace(bytes, end);
      if (bytes[at] !== COMMA) return undefined;
      at = skipSpace(bytes, at + 1);
    }
    if (end !== undefined) this.#note(length + first / RUN, start, end);
    return end;
  }

  /** The page, once all of its runs that are others have been read. */
  page(): Pick<ReceivedPage, 'ids' | 'keys' | 'texts' | 'changes' | 'records'> {
    const { keys, texts: textsBefore } = this.#before;
    const changes = Uint32Array.from(this.#changes);
    const areFew = textsBefore.changeCount + changes.length / CHANGE_WORDS <= CHANGED_AT_MOST * textsOf(keys.length);
    const texts = textsBefore.with(changes);
    return { ids: this.#before, keys, texts, changes: areFew ? changes : undefined, records: this.#records };
  }

  #readRecord(n: number, start: number): number | undefined {
    const read = this.#readAt(start);
    if (!read || !this.#before.keys.isKey(n, read.id)) return undefined;
    this.#note(n, start, read.end);
    // Apart from the response, which is large and need not wait for what little of it is written.
    const source = Buffer.from(this.#bytes.subarray(start, read.end));
    this.#records.push({ id: read.id, source, start: 0, end: source.length, position: n });
    return read.end;
  }

  #note(n: number, start: number, end: number): void {
    const hash = hashOf(this.#bytes, start, end);
    this.#changes.push(n, hash[0]!, hash[1]!, end - start);
  }
}
