import { isMusterError } from '../core/errors.js';
import type { EncryptionKey } from '../core/secret.js';
import { readCiphertexts, SEALED_COLUMNS } from '../db/tables/ciphertexts.js';
import { readMarkKey } from '../db/tables/marks.js';
import { Cipher, Keyring } from '../oauth/cipher.js';
import { type Check, counted, type Finding, holding, NotLookedAt, ok, problem, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

/** `none`: no key is kept yet. `wrong`: MUSTER_ENCRYPTION_KEYS cannot be read. */
export type Keys = readonly EncryptionKey[] | 'none' | 'wrong';

const ROTATE = 'Once every process has the new key first: `muster rotate-keys`.';

/** Tokens by the key that they need; the key is `null` where the stored text is no ciphertext. */
interface Tally {
  readonly key: string | null;
  tokens: number;
  missing: number;
  damaged: number;
}

/** Checks that each stored token and the key of the marks can be decrypted. No plaintext is kept, shown or sent. */
export function checkKeys(keys: Keys, access: DatabaseAccess): Check {
  return {
    name: 'keys',
    look: async () => {
      if (keys === 'wrong')
        throw new NotLookedAt(
          warning('not looked at: MUSTER_ENCRYPTION_KEYS is wrong or missing', 'Set it right, and look again.'),
        );
      if (keys === 'none') return [ok('none yet; one is made at the first start, and kept under MUSTER_HOME')];
      const ring = new Keyring(keys);
      const cipher = new Cipher(ring);
      const tallies = await tally(access, cipher);
      const markKey = await access.read(readMarkKey);
      const used = new Set([...tallies.map(({ key }) => key), ...(markKey === undefined ? [] : [keyOf(markKey)])]);
      const idle = keys.filter(({ id }) => id !== ring.currentId && !used.has(id)).map(({ id }) => id);
      return holding(
        tallies.length === 0 && ok('no token is stored'),
        ...tallies.flatMap((one) => findingsOf(one, ring)),
        markKey !== undefined && describeMarkKey(markKey, cipher),
        idle.length > 0 &&
          ok(
            `neither tokens nor marks need the key ${idle.join(', ')}: after \`muster rotate-keys\` it may go from MUSTER_ENCRYPTION_KEYS`,
          ),
      );
    },
  };
}

async function tally(access: DatabaseAccess, cipher: Cipher): Promise<Tally[]> {
  const tallies = new Map<string | null, Tally>();
  for (const column of SEALED_COLUMNS) {
    for (const { sealed, ...company } of await access.read((db) => readCiphertexts(db, column))) {
      const key = keyOf(sealed);
      const found = tallies.get(key) ?? { key, tokens: 0, missing: 0, damaged: 0 };
      tallies.set(key, found);
      found.tokens += 1;
      try {
        cipher.open(sealed, company, column.field);
      } catch (error) {
        if (!isMusterError(error, 'token_unreadable')) throw error;
        found[error.details['reason'] === 'missing_key' ? 'missing' : 'damaged'] += 1;
      }
    }
  }
  return [...tallies.values()];
}

/** Checks the key of the marks that keep forgotten records out. */
function describeMarkKey(sealed: string, cipher: Cipher): Finding {
  try {
    cipher.openMarkKey(sealed);
  } catch (error) {
    if (!isMusterError(error, 'mark_key_unreadable')) throw error;
    const found = `the key of the marks does not open with key ${keyOf(sealed)}: lists with a forgotten person cannot be walked`;
    return error.details['reason'] === 'missing_key'
      ? problem(found, 'Append that key to MUSTER_ENCRYPTION_KEYS again, and run `muster rotate-keys`.')
      : problem(found, 'Give the id the key that it had, or restore `muster.mark_key` from a backup.');
  }
  return cipher.isCurrent(sealed)
    ? ok('the key of the marks can be read')
    : warning(`the key of the marks can be read with key ${keyOf(sealed)}, which is not the first`, ROTATE);
}

/** The id of the key that a ciphertext needs; null where it is none. */
function keyOf(sealed: string): string | null {
  return /^v1\.(.+)\.[\w-]+$/.exec(sealed)?.[1] ?? null;
}

function findingsOf({ key, tokens, missing, damaged }: Tally, { currentId }: Keyring): Finding[] {
  const readable = tokens - missing - damaged;
  const text = `${counted(readable, 'token')} can be read with key ${key}`;
  return holding(
    missing > 0 &&
      problem(
        `${counted(missing, 'token')} encrypted with key ${key}, which is missing: their companies cannot be synced`,
        'Append that key to MUSTER_ENCRYPTION_KEYS again; `muster rotate-keys` lists the companies.',
      ),
    damaged > 0 &&
      problem(
        key === null
          ? `${counted(damaged, 'token')} cannot be read: what is stored is no ciphertext`
          : `${counted(damaged, 'token')} do not open with key ${key}: another key had this id, or the rows were altered`,
        'Give the id the key that it had; else send each of these companies a connect link. `muster rotate-keys` lists them.',
      ),
    readable > 0 && (key === currentId ? ok(text) : warning(`${text}, which is not the first`, ROTATE)),
  );
}
