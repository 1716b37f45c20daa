import type { CompanyKey } from '../core/company.js';
import { isMusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import {
  countCiphertextsByKey,
  findCiphertexts,
  replaceCiphertext,
  SEALED_COLUMNS,
  type SealedColumn,
} from '../db/tables/ciphertexts.js';
import { findOldClaims, replaceClaims } from '../db/tables/connections.js';
import { forgetOtherFingerprints } from '../db/tables/encryption-keys.js';
import { findAnswers, replaceAnswer } from '../db/tables/idempotency-keys.js';
import { findMarkKey, replaceMarkKey } from '../db/tables/marks.js';
import type { Logger } from '../observability/logger.js';
import type { Cipher, Keyring } from './cipher.js';
import { readClaims } from './grant-claims.js';

/** A token that could not be encrypted again. */
export interface UnreadableToken extends CompanyKey, SealedColumn {
  /** Id of the key that it needs; null if the text is no ciphertext. */
  readonly key: string | null;
  readonly reason: 'missing_key' | 'damaged';
}

export interface Rotation {
  /** Ciphertexts that were encrypted again. */
  readonly rotated: number;
  readonly unreadable: readonly UnreadableToken[];
  /** Ciphertexts that another process keeps making with an older key, because its first key is not the first key here. */
  readonly behind: number;
}

/** Each pass finds ciphertexts written with an older key during the pass before. A process that keeps writing them cannot be outrun. */
const PASSES = 5;

/**
 * Encrypts every ciphertext of another key of the ring again, with the first key. If none is unreadable or `behind`, the other keys may
 * be removed from MUSTER_ENCRYPTION_KEYS, and their ids are free. Safe during refreshes, and safe to interrupt and repeat: a
 * ciphertext that changes concurrently is not touched; the next pass finds it if it still has an older key. Throws
 * `database_unavailable`, `mark_key_unreadable`.
 */
export async function rotateKeys(db: Database, cipher: Cipher): Promise<Rotation> {
  let rotated = 0;
  for (let pass = 1; ; pass++) {
    const { done, unreadable, old } = await withDatabaseErrors(rotateOnce(db, cipher));
    const answers = await withDatabaseErrors(rotateAnswers(db, cipher));
    await withDatabaseErrors(rotateMarkKey(db, cipher));
    await withDatabaseErrors(rotateClaims(db, cipher));
    rotated += done;
    if (old === unreadable.length && answers === 0) {
      if (unreadable.length === 0) await withDatabaseErrors(forgetOtherFingerprints(db, cipher.currentId));
      return { rotated, unreadable, behind: 0 };
    }
    if (pass === PASSES) return { rotated, unreadable, behind: old - unreadable.length + answers };
  }
}

/** `old`: the number of ciphertexts found with another key. */
async function rotateOnce(db: Database, cipher: Cipher) {
  let done = 0;
  let old = 0;
  const unreadable: UnreadableToken[] = [];
  for (const column of SEALED_COLUMNS) {
    const rows = await findCiphertexts(db, column);
    for (const { sealed, ...company } of rows.filter((row) => !cipher.isCurrent(row.sealed))) {
      old += 1;
      try {
        const again = cipher.seal(cipher.open(sealed, company, column.field), company, column.field);
        done += await replaceCiphertext(db, { ...column, company, sealed, again });
      } catch (error) {
        if (!isMusterError(error, 'token_unreadable')) throw error;
        unreadable.push({ ...company, ...column, ...(error.details as Pick<UnreadableToken, 'key' | 'reason'>) });
      }
    }
  }
  return { done, unreadable, old };
}

/**
 * Rotates the answers of idempotency keys, and returns how many were encrypted again. An unreadable one does no harm: it is never returned, and
 * is removed within a day.
 */
async function rotateAnswers(db: Database, cipher: Cipher): Promise<number> {
  let done = 0;
  for (const { answer, ...key } of await findAnswers(db)) {
    if (cipher.isCurrent(answer)) continue;
    try {
      const again = cipher.sealAnswer(cipher.openAnswer(answer, key), key);
      done += await replaceAnswer(db, { ...key, answer, again });
    } catch (error) {
      if (!isMusterError(error, 'answer_unreadable')) throw error;
    }
  }
  return done;
}

/** Rotates the key of the marks. Throws `mark_key_unreadable`, because without the key forgotten records cannot be recognized. */
async function rotateMarkKey({ prisma }: Database, cipher: Cipher): Promise<void> {
  const sealed = await findMarkKey(prisma);
  if (sealed === undefined || cipher.isCurrent(sealed)) return;
  await replaceMarkKey(prisma, { sealed, again: cipher.sealMarkKey(cipher.openMarkKey(sealed)) });
}

/**
 * Hashes the claims of access tokens again. If the current token is not the hashed one, or cannot be decrypted, the hash is removed: the next refresh stores
 * a new one, and an authorization before that counts as another grant.
 */
async function rotateClaims(db: Database, cipher: Cipher): Promise<void> {
  for (const { claims, accessToken, ...company } of await findOldClaims(db, { currentKey: cipher.currentId })) {
    const read = accessToken === null ? undefined : openClaims(cipher, company, accessToken);
    const again = read !== undefined && cipher.isHashOf(claims, read, company) ? cipher.hashClaims(read, company) : undefined;
    await replaceClaims(db, { company, claims, again: again ?? null });
  }
}

function openClaims(cipher: Cipher, company: CompanyKey, accessToken: string): string | undefined {
  try {
    return readClaims(cipher.open(accessToken, company, 'access_token'))?.text;
  } catch (error) {
    if (isMusterError(error, 'token_unreadable')) return undefined;
    throw error;
  }
}

/** Warns once per missing key instead of once per company during the night. Throws `database_unavailable`. */
export async function warnOfMissingKeys(db: Database, keyring: Keyring, logger: Logger): Promise<void> {
  for (const { key, tokens, example } of await withDatabaseErrors(countCiphertextsByKey(db))) {
    if (keyring.get(key)) continue;
    logger.error(
      { key, tokens, example },
      `${tokens} stored tokens need the encryption key "${key}", which is not among MUSTER_ENCRYPTION_KEYS: ` +
        'their companies cannot be synced. Add the key back after the first one; "muster rotate-keys" lists the companies.',
    );
  }
}
