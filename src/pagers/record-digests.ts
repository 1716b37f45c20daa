import { hashBytes, RUN, TEXT_WORDS, TextHashes, textsOf, wordsOf } from './hashes.js';
import type { ScannedArray } from './json-scanner.js';

export interface RecordDigests {
  /** Hash and length of the text of the array that holds the records. */
  readonly digest: Buffer;
  readonly texts: TextHashes;
}

/** 12 bytes: a 64-bit hash and the length. */
export function digestArray(bytes: Uint8Array): Buffer {
  const digest = Buffer.allocUnsafe(12);
  digest.writeUInt32LE(bytes.length, digest.writeBigUInt64LE(hashBytes(bytes)));
  return digest;
}

/**
 * Hashes the text from `start` to `end` into text `n` of the words of TextHashes. Every record of a page goes through here: no
 * arithmetic of large numbers, and no Buffer, which takes longer to make than its hash.
 */
export function digestText(bytes: Uint8Array, start: number, end: number, words: Uint32Array, n: number): void {
  const hash = wordsOf(hashBytes(new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start)));
  const at = TEXT_WORDS * n;
  words[at] = hash[0]!;
  words[at + 1] = hash[1]!;
  words[at + 2] = end - start;
}

/** Digests of the array, of its records and of their runs. */
export function digestRecords(bytes: Buffer, { start, end, records }: ScannedArray): RecordDigests {
  const words = new Uint32Array(TEXT_WORDS * textsOf(records.length));
  for (const [n, record] of records.entries()) digestText(bytes, record.start, record.end, words, n);
  for (let n = 0; n < records.length; n += RUN) {
    const last = records[Math.min(n + RUN, records.length) - 1]!;
    digestText(bytes, records[n]!.start, last.end, words, records.length + n / RUN);
  }
  return { digest: digestArray(bytes.subarray(start, end)), texts: new TextHashes(records.length, words) };
}
