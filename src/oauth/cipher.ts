import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { type CompanyKey, describeCompany } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { type EncryptionKey, Secret } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';

const VERSION = 'v1';
const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The column of a token, bound into the ciphertext: moved to a different row or column, a ciphertext does not open. */
export type TokenField = 'access_token' | 'refresh_token';

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

/** Tokens at rest: `v1.<key id>.<base64url of nonce, ciphertext and tag>`, AES-256-GCM with a random nonce. */
export class Cipher {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  seal(token: Secret, company: CompanyKey, field: TokenField): string {
    const id = this.#keyring.currentId;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key(id, company, field), nonce).setAAD(boundTo(company, field));
    const sealed = Buffer.concat([nonce, cipher.update(token.reveal(), 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${id}.${sealed.toString('base64url')}`;
  }

  /** Throws `token_unreadable` for a key that is not in the ring, and for a ciphertext of a different row or a damaged one. */
  open(text: string, company: CompanyKey, field: TokenField): Secret {
    // The payload follows the last dot, since base64url has no dots.
    const [, id, payload] = /^v1\.(.+)\.([\w-]+)$/.exec(text) ?? [];
    const sealed = Buffer.from(payload ?? '', 'base64url');
    if (id === undefined || sealed.length < NONCE_BYTES + TAG_BYTES)
      throw unreadable(company, field, 'is no ciphertext of this version', { key: null, reason: 'damaged' });
    const nonce = sealed.subarray(0, NONCE_BYTES);
    const key = this.#key(id, company, field);
    try {
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(boundTo(company, field)).setAuthTag(sealed.subarray(-TAG_BYTES));
      const token = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8');
      registerSecret(token);
      return new Secret(token);
    } catch (error) {
      const problem = `does not open with key "${id}": it was made for another row, or damaged`;
      throw unreadable(company, field, problem, { key: id, reason: 'damaged' }, error);
    }
  }

  /** Whether the first key of the ring made the ciphertext. */
  isCurrent(text: string): boolean {
    return text.startsWith(`${VERSION}.${this.#keyring.currentId}.`);
  }

  #key(id: string, company: CompanyKey, field: TokenField): Buffer {
    const key = this.#keyring.get(id);
    if (key) return key;
    throw unreadable(
      company,
      field,
      `is encrypted with key "${id}", which is not among MUSTER_ENCRYPTION_KEYS; add that key back and run "muster rotate-keys" before removing it`,
      { key: id, reason: 'missing_key' },
    );
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

function boundTo({ environment, companyId }: CompanyKey, field: TokenField): Buffer {
  return Buffer.from(`${environment}|${companyId}|${field}`);
}

function unreadable(
  company: CompanyKey,
  field: TokenField,
  problem: string,
  details: { key: string | null; reason: 'missing_key' | 'damaged' },
  cause?: unknown,
): MusterError {
  const message = `The ${field.replace('_', ' ')} of ${describeCompany(company)} ${problem}`;
  return new MusterError('token_unreadable', message, { cause, details });
}
