import xxhash from 'xxhash-wasm';

const { create64, h64, h64Raw } = await xxhash();

/** Bytes hashed at once. The hash copies them into its own memory, which grows to the largest piece and never shrinks. */
const CHUNK_BYTES = 2 ** 16;

/** XXH64 of bytes. The hash is not cryptographic: it detects that a service sent another text than before. */
export function hashBytes(bytes: Uint8Array): bigint {
  if (bytes.length <= CHUNK_BYTES) return h64Raw(bytes);
  const hash = create64();
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) hash.update(bytes.subarray(at, at + CHUNK_BYTES));
  return hash.digest();
}

/** XXH64 of a text's UTF-8. */
export function hashText(text: string): bigint {
  return h64(text);
}

const number = new BigUint64Array(1);
const words = new Uint32Array(number.buffer);

/** The two words of a 64-bit number. All calls share one array: the next call overwrites it. */
export function wordsOf(hash: bigint): Uint32Array {
  number[0] = hash;
  return words;
}
