import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { type CompanyKey, describeCompany } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { type EncryptionKey, Secret } from '../core/secret.js';
import type { KeyOwner } from '../db/tables/idempotency-keys.js';
import { registerSecret } from '../observability/secret-registry.js';

const VERSION = 'v1';
const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The column of a token. */
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

  /** HMAC-SHA-256 under a key derived for the purpose. Undefined if the ring has no key with this id. */
  mac(id: string, purpose: string, text: string): Buffer | undefined {
    const key = this.#keys.get(id);
    if (!key) return undefined;
    const derived = Buffer.from(hkdfSync('sha256', key, '', purpose, KEY_BYTES));
    return createHmac('sha256', derived).update(text).digest();
  }

  /** HMAC-SHA-256 in hex by the key's id. Fingerprints distinguish keys without revealing them. */
  fingerprints(): ReadonlyMap<string, string> {
    const fingerprint = (key: Buffer) => createHmac('sha256', key).update('muster encryption key').digest('hex');
    return new Map([...this.#keys].map(([id, key]) => [id, fingerprint(key)]));
  }
}

/** Why a ciphertext cannot be decrypted. `key`: the id of the key that it needs; null if it names none. */
interface Unreadable {
  readonly problem: string;
  readonly key: string | null;
  readonly reason: 'missing_key' | 'damaged';
  readonly cause?: unknown;
}

/**
 * Encrypts tokens, answers of the admin API, and the key of the marks at rest: `v1.<key id>.<base64url of nonce, ciphertext and tag>`, AES-256-GCM with a random nonce.
 * The place of a text is bound into its ciphertext: moved to another row or column, it cannot be decrypted.
 */
export class Cipher {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  /** The id of the key that encrypts. */
  get currentId(): string {
    return this.#keyring.currentId;
  }

  seal(token: Secret, company: CompanyKey, field: TokenField): string {
    return this.#seal(token.reveal(), placeOf(company, field));
  }

  /** Throws `token_unreadable` if the key is missing, or the ciphertext is damaged or from another row. */
  open(text: string, company: CompanyKey, field: TokenField): Secret {
    const token = this.#open(text, placeOf(company, field), (why) => unreadableToken(company, field, why));
    registerSecret(token);
    return new Secret(token);
  }

  /** An answer that may hold a secret, for its idempotency key. */
  sealAnswer(answer: string, key: KeyOwner): string {
    return this.#seal(answer, placeOfAnswer(key));
  }

  /** Throws `answer_unreadable`. */
  openAnswer(text: string, key: KeyOwner): string {
    return this.#open(text, placeOfAnswer(key), unreadableAnswer);
  }

  /** The key of the marks of who was forgotten (src/privacy/suppressions.ts). */
  sealMarkKey(key: Secret): string {
    return this.#seal(key.reveal(), PLACE_OF_MARK_KEY);
  }

  /** Throws `mark_key_unreadable`. */
  openMarkKey(text: string): Secret {
    const key = this.#open(text, PLACE_OF_MARK_KEY, unreadableMarkKey);
    registerSecret(key, { lasting: true });
    return new Secret(key);
  }

  /**
   * A keyed hash of the claims of a company's access tokens, so that a guess cannot be checked without the key: `v1.<key id>.<HMAC-SHA-256 in base64url>`. Undefined
   * if the ring has no key with this id.
   */
  hashClaims(claims: string, { environment, companyId }: CompanyKey, id = this.currentId): string | undefined {
    const hash = this.#keyring.mac(id, 'muster grant claims', JSON.stringify([environment, companyId, claims]));
    return hash && `${VERSION}.${id}.${hash.toString('base64url')}`;
  }

  /** Whether the hash is of these claims; undefined if the ring does not have the key any more. */
  isHashOf(hash: string, claims: string, company: CompanyKey): boolean | undefined {
    const again = this.hashClaims(claims, company, hash.slice(VERSION.length + 1, hash.lastIndexOf('.')));
    return again === undefined ? undefined : again === hash;
  }

  /** Whether the ciphertext or hash was made with the first key of the ring. */
  isCurrent(text: string): boolean {
    return text.startsWith(`${VERSION}.${this.#keyring.currentId}.`);
  }

  #seal(text: string, place: string): string {
    const id = this.#keyring.currentId;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#keyring.get(id)!, nonce).setAAD(Buffer.from(place));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${id}.${sealed.toString('base64url')}`;
  }

  #open(text: string, place: string, errorOf: (why: Unreadable) => MusterError): string {
    // The payload follows the last dot, since base64url has no dots.
    const [, id, payload] = /^v1\.(.+)\.([\w-]+)$/.exec(text) ?? [];
    const sealed = Buffer.from(payload ?? '', 'base64url');
    if (id === undefined || sealed.length < NONCE_BYTES + TAG_BYTES)
      throw errorOf({ problem: 'is no ciphertext of this version', key: null, reason: 'damaged' });
    const key = this.#keyring.get(id);
    if (!key) {
      const missing = `is encrypted with key "${id}", which is not among MUSTER_ENCRYPTION_KEYS`;
      const problem = `${missing}; add that key back and run "muster rotate-keys" before removing it`;
      throw errorOf({ problem, key: id, reason: 'missing_key' });
    }
    try {
      const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(place)).setAuthTag(sealed.subarray(-TAG_BYTES));
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8');
    } catch (cause) {
      const problem = `does not open with key "${id}": it was made for another row, or damaged`;
      throw errorOf({ problem, key: id, reason: 'damaged', cause });
    }
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

function placeOf({ environment, companyId }: CompanyKey, field: TokenField): string {
  return `${environment}|${companyId}|${field}`;
}

const PLACE_OF_MARK_KEY = 'mark-key';

function placeOfAnswer({ owner, keyHash }: KeyOwner): string {
  return `answer|${owner}|${keyHash}`;
}

function unreadableToken(company: CompanyKey, field: TokenField, { problem, key, reason, cause }: Unreadable): MusterError {
  const message = `The ${field.replace('_', ' ')} of ${describeCompany(company)} ${problem}`;
  return new MusterError('token_unreadable', message, { cause, details: { key, reason } });
}

function unreadableAnswer({ problem, cause }: Unreadable): MusterError {
  const message = `The call was answered before, and its answer ${problem}. Nothing was done now: check what the call did then`;
  return new MusterError('answer_unreadable', message, { cause });
}

function unreadableMarkKey({ problem, key, reason, cause }: Unreadable): MusterError {
  const message = `The key of the marks, which keep out forgotten records, ${problem}`;
  return new MusterError('mark_key_unreadable', message, { cause, details: { key, reason } });
}
