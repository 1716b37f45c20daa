import type { Secret } from './secret.js';

/** A key of MUSTER_ENCRYPTION_KEYS. */
export interface EncryptionKey {
  /** Stands in every ciphertext that this key made. */
  readonly id: string;
  /** Base64 of 32 bytes. */
  readonly key: Secret;
}
