import { isMusterError, MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { findSomeCiphertexts } from '../db/tables/ciphertexts.js';
import { findFingerprints, keepFingerprints } from '../db/tables/encryption-keys.js';
import { findMarkKey } from '../db/tables/marks.js';
import { Cipher, type Keyring } from './cipher.js';

/** Ciphertexts of a key that are tried where its fingerprint is not known yet. One that opens is enough: others may be damaged. */
const TRIED = 5;

/**
 * Throws `invalid_configuration` where a key of the ring is not the one that this database knows under its id: with it no company could be
 * refreshed, and what it encrypts the right one could not read. Remembers those that are new. Throws `database_unavailable`.
 */
export async function requireKnownKeys(db: Database, keyring: Keyring): Promise<void> {
  const fingerprints = keyring.fingerprints();
  await withDatabaseErrors(requireFingerprints(db, keyring, fingerprints));
}

async function requireFingerprints(db: Database, keyring: Keyring, fingerprints: ReadonlyMap<string, string>): Promise<void> {
  const known = await findFingerprints(db, [...fingerprints.keys()]);
  for (const id of fingerprints.keys()) if (!known.has(id) && !(await opensWhatIsStored(db, keyring, id))) throw anotherKey(id);
  const kept = await keepFingerprints(db, fingerprints);
  for (const [id, fingerprint] of fingerprints) if (kept.get(id) !== fingerprint) throw anotherKey(id);
}

/** Whether something that is stored under the key's id opens with it, or nothing is stored under it. */
async function opensWhatIsStored(db: Database, keyring: Keyring, id: string): Promise<boolean> {
  const cipher = new Cipher(keyring);
  const markKey = await findMarkKey(db.prisma);
  const attempts: (() => unknown)[] = (await findSomeCiphertexts(db, { key: id, limit: TRIED })).map(
    ({ sealed, field, ...company }) =>
      () =>
        cipher.open(sealed, company, field),
  );
  if (markKey?.startsWith(`v1.${id}.`)) attempts.push(() => cipher.openMarkKey(markKey));
  return attempts.length === 0 || attempts.some(succeeds);
}

function succeeds(attempt: () => unknown): boolean {
  try {
    attempt();
    return true;
  } catch (error) {
    if (isMusterError(error, 'token_unreadable') || isMusterError(error, 'mark_key_unreadable')) return false;
    throw error;
  }
}

function anotherKey(id: string): MusterError {
  return new MusterError(
    'invalid_configuration',
    `MUSTER_ENCRYPTION_KEYS: "${id}" is another key than the one that this database knows under that id. Give the id the key that it had; ` +
      'a new key takes an id of its own, before the old one until `muster rotate-keys` has run',
  );
}
