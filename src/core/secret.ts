import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/** A value that no log, JSON or template string can show by accident; `reveal()` is the only way to it. */
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
  /** Stands in every ciphertext that this key made. */
  readonly id: string;
  /** Base64 of 32 bytes. */
  readonly key: Secret;
}
