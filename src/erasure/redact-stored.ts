import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { keepListRules, lockListRules, type StoredRules, setListRules } from '../db/tables/list-privacy.js';
import type { ListKey } from '../db/tables/lists.js';
import { dropCheckpoints } from '../db/tables/walks.js';
import { identityOf, type Privacy, privacyOf } from '../privacy/rules.js';
import { HOLDERS } from './holders.js';

/** The rules of a catalogue entry as they are stored. */
export function storedRules(privacy: Privacy | undefined): StoredRules {
  return privacy ? identityOf(privacy) : null;
}

/**
 * Makes the stored data of a list follow the rules of the catalogue, without the service: rows by the new rules; data that cannot be redacted is
 * removed. All of it or nothing. Every walk of the list is fenced, and the next one starts from the beginning: it makes right what the stored text
 * does not tell, such as a member that is no longer dropped.
 *
 * Returns how many rows have changed; undefined where the list stood under these rules already.
 */
export function redactStored(db: Database, list: ListKey, privacy: Privacy | undefined): Promise<number | undefined> {
  const work = async (tx: Transaction) => {
    const known = await lockListRules(tx, list, storedRules(privacy));
    if (!known) return undefined;
    if (known.isSame) {
      await keepListRules(tx, list);
      return undefined;
    }
    await setListRules(tx, list, storedRules(privacy));
    await dropCheckpoints(tx, list);
    const added = privacy && addedRules(known.rules, privacy);
    if (!added) return 0;
    let changed = 0;
    for (const { byRules } of HOLDERS) changed += (await byRules?.(tx, list, added)) ?? 0;
    return changed;
  };
  return inTransaction(db, work, { timeoutMs: WHOLE_LIST_MS });
}

/** The rules that the stored text does not follow yet; a hash by another key is another rule. Undefined where there are none. */
function addedRules(known: StoredRules, privacy: Privacy): Privacy | undefined {
  const { rules, keyId } = identityOf(privacy);
  const isKnown = (path: string, kind: string) => known?.rules[path] === kind && (kind !== 'hash' || known.keyId === keyId);
  return privacyOf(Object.fromEntries(Object.entries(rules).filter(([path, kind]) => !isKnown(path, kind))), privacy.key);
}
