import { BYTES_A_TURN } from '../core/turns.js';
import { hashBytes, wordsOf } from '../core/xxh64.js';
import type { Span } from '../pagers/json-text.js';

/**
 * Row hashes stand for the texts of a page's records. Each record has ROW_WORDS words: two for the 64-bit hash of its text, one for its length in
 * bytes. After them each chunk of CHUNK records has as many, for the text from its first record to its last. An unchanged page is
 * recognized by its chunks, and a changed chunk by its records.
 *
 * The words are stored (muster.page_snapshots): a change of their meaning must raise CHECKPOINT_FORMAT in src/catalogue/fingerprint.ts.
 */
export const ROW_WORDS = 3;
export const ROW_BYTES = ROW_WORDS * Uint32Array.BYTES_PER_ELEMENT;
/** Records of a chunk; the last chunk of a page may have fewer. */
export const CHUNK = 16;

/** The row hashes of a page, made in portions. */
export function* hashRows(bytes: Uint8Array, records: readonly Span[]): Generator<void, Uint32Array> {
  const words = new Uint32Array(ROW_WORDS * (records.length + Math.ceil(records.length / CHUNK)));
  let from = 0;
  for (let n = 0; n < records.length; n += CHUNK) {
    const chunk = records.slice(n, n + CHUNK);
    for (const [m, { start, end }] of chunk.entries()) putRow(words, n + m, bytes, start, end);
    const { end } = chunk.at(-1)!;
    putRow(words, records.length + n / CHUNK, bytes, chunk[0]!.start, end);
    if (end - from < BYTES_A_TURN) continue;
    yield;
    from = end;
  }
  return words;
}

/** Puts the hash of the text from `start` to `end` into the place of row `n`. */
export function putRow(words: Uint32Array, n: number, bytes: Uint8Array, start: number, end: number): void {
  const hash = hashOf(bytes, start, end);
  words[ROW_WORDS * n] = hash[0]!;
  words[ROW_WORDS * n + 1] = hash[1]!;
  words[ROW_WORDS * n + 2] = end - start;
}

/** Clears the words of these records and of their chunks. No text has the hash that is left. */
export function blankRows(words: Uint32Array, positions: readonly number[]): void {
  // A chunk has CHUNK records, and the last one the rest.
  const rows = words.length / ROW_WORDS;
  const records = rows - Math.ceil(rows / (CHUNK + 1));
  for (const n of positions) {
    words.fill(0, ROW_WORDS * n, ROW_WORDS * (n + 1));
    const chunk = records + Math.floor(n / CHUNK);
    words.fill(0, ROW_WORDS * chunk, ROW_WORDS * (chunk + 1));
  }
}

/** The row hash of a text as it is stored: ROW_BYTES bytes. */
export function rowHashOf(text: Uint8Array): Buffer {
  const words = new Uint32Array(ROW_WORDS);
  putRow(words, 0, text, 0, text.byteLength);
  return Buffer.from(words.buffer);
}

/** Where the text of row `n` ends, if it is what stands at `start`, before `limit`. */
export function endOfRow(bytes: Uint8Array, start: number, limit: number, words: Uint32Array, n: number): number | undefined {
  const at = ROW_WORDS * n;
  const end = start + words[at + 2]!;
  if (end >= limit) return undefined;
  const hash = hashOf(bytes, start, end);
  return hash[0] === words[at] && hash[1] === words[at + 1] ? end : undefined;
}

/** Whether row `n` has the text of row `m` of the others. */
export function isSameRow(words: Uint32Array, n: number, others: Uint32Array, m: number): boolean {
  return words[ROW_WORDS * n] === others[ROW_WORDS * m] && words[ROW_WORDS * n + 1] === others[ROW_WORDS * m + 1];
}

/** Every record of a page goes through here: no arithmetic of large numbers, and no Buffer, which takes longer to make than the hash. */
function hashOf(bytes: Uint8Array, start: number, end: number): Uint32Array {
  return wordsOf(hashBytes(new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start)));
}
