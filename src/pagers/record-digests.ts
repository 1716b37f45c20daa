import { createHash } from 'node:crypto';
import { hashBytes } from './hashes.js';
import type { ScannedArray } from './json-scanner.js';

export interface RecordDigests {
  /** SHA-256 of the text of the array that holds the records. */
  readonly digest: Buffer;
  /** Of each record's text TEXT_WORDS words: two of its 64-bit hash, and its length in bytes. */
  readonly texts: Uint32Array;
}

export const TEXT_WORDS = 3;

export function digestArray(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** Digests of the array and of its records. */
export function digestRecords(bytes: Buffer, { start, end, records }: ScannedArray): RecordDigests {
  const texts = new Uint32Array(TEXT_WORDS * records.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  for (const record of records) {
    hashBytes(view, record.start, record.end, texts, at);
    texts[at + 2] = record.end - record.start;
    at += TEXT_WORDS;
  }
  return { digest: digestArray(bytes.subarray(start, end)), texts };
}
