import { hash } from 'node:crypto';
import type { Secret } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';

/** The text that is hashed for the key's id. No value of a record equals it. */
const ID_TEXT = '\0muster privacy key\0';

/** Bytes of SHA-256. */
const BLOCK = 64;
const DIGEST = 32;
/** Values of up to so many bytes share one buffer; few are longer. */
const SHORT = 1_024;

/** MUSTER_PRIVACY_KEY. Only hashes by it leave this object. */
export class PrivacyKey {
  /** The beginnings of both hashes of HMAC (RFC 2104), with room for their ends: a short value, and the inner digest. */
  readonly #inner: Buffer;
  readonly #outer: Buffer;
  /** Tells this key from others, and nothing of it: 64 bits of a keyed hash. Goes into the catalogue's fingerprint and the database. */
  readonly id: string;

  /** `key`: base64 of 32 bytes. */
  constructor(key: Secret) {
    registerSecret(key.reveal(), { lasting: true });
    const bytes = Buffer.from(key.reveal(), 'base64');
    const padded = (pad: number, length: number) =>
      Buffer.alloc(length).map((_, n) => (n < BLOCK ? (bytes[n] ?? 0) ^ pad : 0)) as Buffer;
    this.#inner = padded(0x36, BLOCK + SHORT);
    this.#outer = padded(0x5c, BLOCK + DIGEST);
    this.id = this.hash(ID_TEXT).slice(0, 16);
  }

  /**
   * HMAC-SHA-256 in 64 lower-case hex digits; a text is taken as UTF-8. It is made of two hashes: `createHmac` takes twice as long (bench/notes.md).
   */
  hash(value: string | Uint8Array): string {
    const message = typeof value === 'string' ? Buffer.from(value) : value;
    this.#outer.write(hash('sha256', this.#begun(message), 'binary'), BLOCK, 'binary');
    return hash('sha256', this.#outer, 'hex');
  }

  #begun(message: Uint8Array): Buffer {
    if (message.length > SHORT) return Buffer.concat([this.#inner.subarray(0, BLOCK), message]);
    this.#inner.set(message, BLOCK);
    return this.#inner.subarray(0, BLOCK + message.length);
  }
}
