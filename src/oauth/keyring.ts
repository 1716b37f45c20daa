import { MusterError } from '../core/errors.js';
import type { EncryptionKey } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';

const KEY_BYTES = 32;

/** The keys of MUSTER_ENCRYPTION_KEYS: the first one encrypts, all of them decrypt. */
export class Keyring {
  readonly currentId: string;
  readonly #keys: ReadonlyMap<string, Buffer>;

  constructor(keys: readonly EncryptionKey[]) {
    const [first] = keys;
    if (!first) throw new MusterError('invalid_configuration', 'MUSTER_ENCRYPTION_KEYS holds no key');
    this.currentId = first.id;
    this.#keys = new Map(keys.map((entry) => [entry.id, decode(entry)]));
  }

  get(id: string): Buffer | undefined {
    return this.#keys.get(id);
  }
}

function decode({ id, key }: EncryptionKey): Buffer {
  registerSecret(key.reveal(), { lasting: true });
  const bytes = Buffer.from(key.reveal(), 'base64');
  if (bytes.length === KEY_BYTES) return bytes;
  throw new MusterError(
    'invalid_configuration',
    `MUSTER_ENCRYPTION_KEYS: key "${id}" has ${bytes.length} bytes, not ${KEY_BYTES}`,
  );
}
