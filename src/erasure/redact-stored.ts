import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { purgeChanges } from '../db/tables/change-batches.js';
import { appendToFeed } from '../db/tables/feed-append.js';
import { forgetRowHashes } from '../db/tables/ledger.js';
import { keepListRules, lockListRules, type StoredRules, setListRules } from '../db/tables/list-privacy.js';
import type { ListKey } from '../db/tables/lists.js';
import { removeRejectedRecords } from '../db/tables/rejected-records.js';
import { dropCheckpoints } from '../db/tables/walks.js';
import { Prisma } from '../generated/prisma/client.js';
import { mirrorTable } from '../mirror/mirror-table.js';
import { redactRecord } from '../privacy/redact.js';
import { identityOf, type Privacy, privacyOf } from '../privacy/rules.js';

const ROWS_AT_ONCE = 500;

/** What is to be stored of the rules of a catalogue entry. */
export function storedRules(privacy: Privacy | undefined): StoredRules {
  return privacy ? identityOf(privacy) : null;
}

/**
 * Makes what is stored of a list follow the rules of the catalogue, without the service: the rows, deleted ones included, by those rules that are new;
 * and what cannot be treated is removed, which is the data of its changes, its rejected records and the hashes of its records' texts. Consumers learn of
 * each living row that has changed by an update. All of it or nothing. Whoever walks the list is fenced, and the next walk begins anew: it makes
 * right what could not be made out of the stored text, such as a member that is no longer dropped.
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
    await purgeChanges(tx, list);
    await removeRejectedRecords(tx, list);
    await forgetRowHashes(tx, list);
    return redactRows(tx, list, added);
  };
  return inTransaction(db, work, { timeoutMs: WHOLE_LIST_MS });
}

/** The rules that the stored text does not follow yet; a hash by another key is another rule. Undefined where there are none. */
function addedRules(known: StoredRules, privacy: Privacy): Privacy | undefined {
  const { rules, keyId } = identityOf(privacy);
  const isKnown = (path: string, kind: string) => known?.rules[path] === kind && (kind !== 'hash' || known.keyId === keyId);
  return privacyOf(Object.fromEntries(Object.entries(rules).filter(([path, kind]) => !isKnown(path, kind))), privacy.key);
}

async function redactRows(tx: Transaction, list: ListKey, rules: Privacy): Promise<number> {
  const { environment, companyId, resource } = list;
  const select = `
    SELECT id, data::text AS text FROM ${mirrorTable(resource)}
    WHERE environment = $1 AND company_id = $2::uuid AND id > $3 ORDER BY id LIMIT ${ROWS_AT_ONCE}`;
  let changed = 0;
  for (let after = ''; ; ) {
    const rows = await tx.$queryRawUnsafe<{ id: string; text: string }[]>(select, environment, companyId, after);
    const treated = rows.map(({ id, text }) => ({ id, before: text, text: redactRecord(text, rules) }));
    const others = treated.filter(({ before, text }) => before !== text);
    if (others.length > 0) {
      // Readers of the feed have heard of the end of deleted rows: those have no more changes.
      await tx.$executeRaw`
        WITH written AS (
          UPDATE ${Prisma.raw(mirrorTable(resource))} t SET data = n.text::jsonb, changed_at = now()
          FROM unnest(${others.map(({ id }) => id)}::text[], ${others.map(({ text }) => text)}::text[]) AS n(id, text)
          WHERE t.environment = ${environment} AND t.company_id = ${companyId}::uuid AND t.id = n.id COLLATE "C"
          RETURNING t.id, t.data, t.deleted_at IS NULL AS is_living
        ), changed AS (
          SELECT id, data FROM written WHERE is_living
        ), ${appendToFeed(list, { op: 'update' })}
        SELECT`;
    }
    changed += others.length;
    if (rows.length < ROWS_AT_ONCE) return changed;
    after = rows.at(-1)!.id;
  }
}
