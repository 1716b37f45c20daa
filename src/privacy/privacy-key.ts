import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { Secret } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';

/** What is hashed for the key's own name: no value of a record reads so. */
const ID_TEXT = '\0muster privacy key\0';

/** MUSTER_PRIVACY_KEY. The key itself leaves this object only as what it has hashed. */
export class PrivacyKey {
  readonly #key: KeyObject;
  /** Tells this key from others, and nothing of it: 64 bits of a keyed hash. Goes into the catalogue's fingerprint and the database. */
  readonly id: string;

  /** `key`: base64 of 32 bytes. */
  constructor(key: Secret) {
    registerSecret(key.reveal(), { lasting: true });
    this.#key = createSecretKey(Buffer.from(key.reveal(), 'base64'));
    this.id = this.hash(ID_TEXT).slice(0, 16);
  }

  /** HMAC-SHA-256 in 64 lower-case hex digits; a text is taken as UTF-8. */
  hash(value: string | Uint8Array): string {
    return createHmac('sha256', this.#key).update(value).digest('hex');
  }
}
