import { createHash, timingSafeEqual } from 'node:crypto';
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

/** The SHA-256 of a secret in base64url, which finds the secret without storing it. */
export function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

/** Compares two texts in a time that does not depend on where they differ. */
export function isSameSecret(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
