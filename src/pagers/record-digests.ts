import { createHash } from 'node:crypto';
import { hashBytes } from './hashes.js';
import type { Span } from './record-scanner.js';

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

/** Digests of the array that begins at `start` of the text, and of its elements; `bytes` is the same text in UTF-8. */
export function digestRecords(bytes: Buffer, text: string, start: number, spans: readonly Span[]): RecordDigests {
  const texts = new Uint32Array(TEXT_WORDS * spans.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const offsetOf = byteOffsets(bytes, text);
  const from = offsetOf(start);
  for (const [n, span] of spans.entries()) {
    const at = offsetOf(span.start);
    const end = offsetOf(span.end);
    hashBytes(view, at, end, texts, TEXT_WORDS * n);
    texts[TEXT_WORDS * n + 2] = end - at;
  }
  const end = text.indexOf(']', spans.at(-1)?.end ?? start) + 1;
  return { digest: digestArray(bytes.subarray(from, offsetOf(end))), texts };
}

/** Index in the bytes, which must be valid UTF-8, of an index in the text; to be asked in rising order. */
function byteOffsets(bytes: Buffer, text: string): (index: number) => number {
  if (bytes.length === text.length) return (index) => index;
  let at = 0;
  let offset = 0;
  return (index) => {
    offset += Buffer.byteLength(text.slice(at, index));
    at = index;
    return offset;
  };
}
