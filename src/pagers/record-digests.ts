import { hashBytes, RUN, TEXT_WORDS, TextHashes, textsOf, wordsOf } from './hashes.js';
import type { ScannedArray } from './json-scanner.js';

/** Hashes the text from `start` to `end` into text `n` of the words of TextHashes. */
function digestText(bytes: Uint8Array, start: number, end: number, words: Uint32Array, n: number): void {
  const hash = hashOf(bytes, start, end);
  const at = TEXT_WORDS * n;
  words[at] = hash[0]!;
  words[at + 1] = hash[1]!;
  words[at + 2] = end - start;
}

/** Where text `n` of the words ends, if it is what stands at `start`, before `limit`. */
export function endOfText(bytes: Uint8Array, start: number, limit: number, words: Uint32Array, n: number): number | undefined {
  const at = TEXT_WORDS * n;
  const end = start + words[at + 2]!;
  if (end >= limit) return undefined;
  const hash = hashOf(bytes, start, end);
  return hash[0] === words[at] && hash[1] === words[at + 1] ? end : undefined;
}

/** Of the records of the array, and of their runs. */
export function digestRecords(bytes: Buffer, records: ScannedArray['records']): TextHashes {
  const words = new Uint32Array(TEXT_WORDS * textsOf(records.length));
  for (const [n, record] of records.entries()) digestText(bytes, record.start, record.end, words, n);
  for (let n = 0; n < records.length; n += RUN) {
    const last = records[Math.min(n + RUN, records.length) - 1]!;
    digestText(bytes, records[n]!.start, last.end, words, records.length + n / RUN);
  }
  return new TextHashes(records.length, words);
}

/**
 * Every record of a page goes through here: no arithmetic of large numbers, and no Buffer, which takes longer to make than its
 * hash.
 */
export function hashOf(bytes: Uint8Array, start: number, end: number): Uint32Array {
  return wordsOf(hashBytes(new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start)));
}
