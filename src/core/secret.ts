import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/** A value that no log, JSON or template string can show by accident. Only `reveal()` returns it. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}

/** A key of MUSTER_ENCRYPTION_KEYS. */
export interface EncryptionKey {
  /** Part of every ciphertext made with this key. */
  readonly id: string;
  /** Base64 of 32 bytes. */
  readonly key: Secret;
}
