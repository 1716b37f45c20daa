import { createHmac, hkdfSync } from 'node:crypto';
import type { Keyring } from './cipher.js';

const ID_BYTES = 16;

/**
 * Makes the tokens of connect links, with keys that are derived from the current encryption key. A token follows from its link's id, so
 * that a link can be shown again although only the token's hash is kept.
 */
export class ConnectLinkSigner {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  /** 43 characters that nobody can guess. A new current key makes a new token. */
  token(linkId: string): string {
    return this.#mac('token', linkId).toString('base64url');
  }

  /** The same id for the same subject as long as the key is the current one. */
  linkId(subject: string): string {
    const hex = this.#mac('link id', subject).toString('hex', 0, ID_BYTES);
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }

  #mac(purpose: 'token' | 'link id', text: string): Buffer {
    const key = this.#keyring.get(this.#keyring.currentId) as Buffer;
    const derived = Buffer.from(hkdfSync('sha256', key, '', `muster connect link ${purpose}`, 32));
    return createHmac('sha256', derived).update(text).digest();
  }
}
