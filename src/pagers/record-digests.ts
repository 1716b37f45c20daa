import { hashBytes } from './hashes.js';
import type { ScannedArray } from './json-scanner.js';

export interface RecordDigests {
  /** 128 bits of hash of the text of the array that holds the records. */
  readonly digest: Buffer;
  /** Of each record's text TEXT_WORDS words: two of its 64-bit hash, and its length in bytes. */
  readonly texts: Uint32Array;
}

export const TEXT_WORDS = 3;

/** Two hashes, since nothing more is looked at of a page that is known by its digest. */
export function digestArray(bytes: Uint8Array): Buffer {
  return Buffer.from(BigUint64Array.of(hashBytes(bytes), hashBytes(bytes, 1n)).buffer);
}

/** Hashes the text from `start` to `end` into record `n` of `texts`. */
export function digestText(bytes: Uint8Array, start: number, end: number, texts: Uint32Array, n: number): void {
  const hash = hashBytes(bytes.subarray(start, end));
  texts[TEXT_WORDS * n] = Number(hash & 0xffffffffn);
  texts[TEXT_WORDS * n + 1] = Number(hash >> 32n);
  texts[TEXT_WORDS * n + 2] = end - start;
}

/** Digests of the array and of its records. */
export function digestRecords(bytes: Buffer, { start, end, records }: ScannedArray): RecordDigests {
  const texts = new Uint32Array(TEXT_WORDS * records.length);
  for (const [n, record] of records.entries()) digestText(bytes, record.start, record.end, texts, n);
  return { digest: digestArray(bytes.subarray(start, end)), texts };
}
