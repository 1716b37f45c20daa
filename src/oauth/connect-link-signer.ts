import { createHmac } from 'node:crypto';
import type { Keyring } from './cipher.js';

const ID_BYTES = 16;

/**
 * Makes the tokens of connect links with keys derived from the current encryption key. A token is derived from its link's id, so
 * that a link can be shown again although only the token's hash is stored.
 */
export class ConnectLinkSigner {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  /** 43 characters that cannot be guessed. Another current key makes another token. */
  token(linkId: string): string {
    return this.#mac('token', linkId).toString('base64url');
  }

  /** Derives an id from the subject, the same one until the current key changes. */
  linkId(subject: string): string {
    const hex = this.#mac('link id', subject).toString('hex', 0, ID_BYTES);
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }

  #mac(purpose: 'token' | 'link id', text: string): Buffer {
    const key = this.#keyring.derive(this.#keyring.currentId, `muster connect link ${purpose}`) as Buffer;
    return createHmac('sha256', key).update(text).digest();
  }
}
