import { hash } from 'node:crypto';
import type { Secret } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';

/** What is hashed for the key's own name: no value of a record reads so. */
const ID_TEXT = '\0muster privacy key\0';

/** Of SHA-256, in bytes. */
const BLOCK = 64;
const DIGEST = 32;
/** Values of up to so many bytes are put where the one before stood; few are longer. */
const SHORT = 1_024;

/** MUSTER_PRIVACY_KEY. The key itself leaves this object only as what it has hashed. */
export class PrivacyKey {
  /** What both hashes of HMAC (RFC 2104) begin with, and room for what each goes on with: a short value, and the inner digest. */
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
   * HMAC-SHA-256 in 64 lower-case hex digits; a text is taken as UTF-8. By two hashes: an object of `createHmac` for each value takes twice as
   * long, and a first mirror with one rule some 5 % longer (bench/notes.md).
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
