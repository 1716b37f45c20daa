import { isMusterError, MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { findSomeCiphertexts } from '../db/tables/ciphertexts.js';
import { findFingerprints, keepFingerprints } from '../db/tables/encryption-keys.js';
import { findMarkKey } from '../db/tables/marks.js';
import { Cipher, type Keyring } from './cipher.js';

/** Ciphertexts of a key to try if its fingerprint is not known yet. One that can be decrypted is enough, because others may be damaged. */
const TRIED = 5;

/**
 * Throws `invalid_configuration` if this database knows another key by the id of a key of the ring: with the wrong key no token could be
 * refreshed, and the right key could not read its ciphertexts. Remembers new keys. Throws `database_unavailable`.
 */
export async function requireKnownKeys(db: Database, keyring: Keyring): Promise<void> {
  await withDatabaseErrors(requireFingerprints(db, keyring));
}

async function requireFingerprints(db: Database, keyring: Keyring): Promise<void> {
  const fingerprints = keyring.fingerprints();
  const known = await findFingerprints(db, [...fingerprints.keys()]);
  for (const id of fingerprints.keys()) if (!known.has(id) && !(await opensWhatIsStored(db, keyring, id))) throw anotherKey(id);
  const kept = await keepFingerprints(db, fingerprints);
  for (const [id, fingerprint] of fingerprints) if (kept.get(id) !== fingerprint) throw anotherKey(id);
}

/** Whether the key decrypts one of the ciphertexts stored under its id, or none is stored. */
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
    `MUSTER_ENCRYPTION_KEYS: "${id}" is another key than the one that this database knows by that id. Give the id its former key. ` +
      'A new key needs a new id; put it before the old one until `muster rotate-keys` has run',
  );
}
