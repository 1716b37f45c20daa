import type { CompanyKey } from '../core/company.js';
import type { Transaction } from '../db/connection/transaction.js';
import { textArray } from '../db/statements/array-literals.js';
import { inPieces } from '../db/statements/in-pieces.js';
import { purgeChanges } from '../db/tables/change-batches.js';
import { eraseChanges, findChangedIds, publishErasure } from '../db/tables/change-erasure.js';
import { isOf } from '../db/tables/connections.js';
import { appendToFeed } from '../db/tables/feed-append.js';
import { type ListKey, subtractRecords } from '../db/tables/lists.js';
import { recordPurge } from '../db/tables/purges.js';
import { Prisma } from '../generated/prisma/client.js';
import { assignments } from '../mirror/mirror-columns.js';
import { tableOf } from '../mirror/mirror-table.js';
import { redactRecord } from '../privacy/redact.js';
import type { Privacy } from '../privacy/rules.js';
import { addPlaceholders, type RecordErasure } from './record-holders.js';

// The mirror's rows and their feed, which change together: records are taken out, a company is, rows are redacted.

/** Takes the records out of the mirror and the feed, and tells readers of the feed of each that it had. */
export async function eraseRows(tx: Transaction, erasure: RecordErasure): Promise<void> {
  const { list, ids, prefix, placeholders } = erasure;
  const gone = await deleteRows(tx, erasure);
  const changed = await findChangedIds(tx, list, { ids, prefix });
  const found = [...new Set([...gone.map(({ id }) => id), ...changed])];
  addPlaceholders(erasure, found);
  await eraseChanges(tx, list, placeholders);
  await publishErasure(tx, list, found);
  await subtractRecords(tx, list, gone.filter(({ living }) => living).length);
  erasure.rows += gone.length;
  if (found.length > 0) erasure.isFound = true;
}

function deleteRows(tx: Transaction, { list, ids, prefix }: RecordErasure) {
  // A range of ids, for which there is an index: what follows a slash in the order of bytes is 0.
  const end = prefix === undefined ? null : `${prefix.slice(0, -1)}0`;
  return tx.$queryRaw<{ id: string; living: boolean }[]>`
    DELETE FROM ${tableOf(list)} WHERE ${isOf(list)} AND (id = ANY(${ids}::text[]) OR (id >= ${prefix ?? null}::text AND id < ${end}::text))
    RETURNING id, deleted_at IS NULL AS living`;
}

/**
 * Takes a company out of schema mirror: the rows of every table with companies, whichever resources the catalogue has or had, and the data of its changes.
 * Readers of the feed learn of each living row by a `delete` without data. The caller has locked the connection and the lists, so that no walk writes.
 */
export async function eraseCompany(tx: Transaction, company: CompanyKey): Promise<void> {
  const tables = await tx.$queryRaw<{ resource: string; quoted: string; isList: boolean }[]>`
    SELECT t.table_name AS resource, quote_ident(t.table_name) AS quoted, bool_or(c.column_name = 'id') AS "isList"
    FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name)
    WHERE t.table_schema = 'mirror' AND t.table_type = 'BASE TABLE'
    GROUP BY t.table_name
    HAVING count(*) FILTER (WHERE c.column_name IN ('environment', 'company_id')) = 2
    ORDER BY t.table_name`;
  await purgeChanges(tx, company);
  for (const { resource, quoted, isList } of tables) {
    const table = Prisma.raw(`mirror.${quoted}`);
    if (isList) await eraseList(tx, { ...company, resource }, table);
    else await tx.$executeRaw`DELETE FROM ${table} WHERE ${isOf(company)}`;
  }
  await recordPurge(tx, company, 'removal');
}

/** Each piece of the rows goes together with its own batch of the feed. */
async function eraseList(tx: Transaction, list: ListKey, table: Prisma.Sql): Promise<void> {
  const query = Prisma.sql`SELECT id FROM ${table} WHERE ${isOf(list)} ORDER BY id`;
  for await (const rows of inPieces<{ id: string }>(tx, query)) {
    const ids = textArray(rows.map(({ id }) => id));
    await tx.$executeRaw`
      WITH gone AS (
        DELETE FROM ${table} WHERE ${isOf(list)} AND id = ANY(${ids}::text[]) RETURNING id, deleted_at IS NULL AS is_living
      ), changed AS (
        SELECT id, NULL::jsonb AS data FROM gone WHERE is_living
      ), ${appendToFeed(list, { op: 'delete' })}
      SELECT`;
  }
}

const ROWS_AT_ONCE = 500;

/**
 * Redacts the rows of a list, deleted ones included, and takes the data out of their changes. Each living row gets an update, even one that the rules leave
 * as it is: its changes so far have no data any more. Returns how many rows have changed.
 */
export async function redactRows(tx: Transaction, list: ListKey, rules: Privacy): Promise<number> {
  const { environment, companyId } = list;
  await purgeChanges(tx, list);
  let changed = 0;
  for (let after = ''; ; ) {
    const rows = await tx.$queryRaw<{ id: string; text: string }[]>`
      SELECT id, data::text AS text FROM ${tableOf(list)} WHERE ${isOf(list)} AND id > ${after} ORDER BY id LIMIT ${ROWS_AT_ONCE}::int`;
    const redacted = rows.map(({ id, text }) => ({ id, before: text, text: redactRecord(text, rules) }));
    const others = redacted.filter(({ before, text }) => before !== text);
    if (others.length > 0) {
      await tx.$executeRaw`
        UPDATE ${tableOf(list)} t SET data = n.text::jsonb, ${Prisma.raw(assignments('redact'))}
        FROM unnest(${others.map(({ id }) => id)}::text[], ${others.map(({ text }) => text)}::text[]) AS n(id, text)
        WHERE t.environment = ${environment} AND t.company_id = ${companyId}::uuid AND t.id = n.id COLLATE "C"`;
    }
    // Readers of the feed have heard of the end of deleted rows: those have no more changes.
    await tx.$executeRaw`
      WITH changed AS (
        SELECT t.id, t.data FROM ${tableOf(list)} t
        WHERE ${isOf(list)} AND t.id = ANY(${rows.map(({ id }) => id)}::text[]) AND t.deleted_at IS NULL
      ), ${appendToFeed(list, { op: 'update' })}
      SELECT`;
    changed += others.length;
    if (rows.length < ROWS_AT_ONCE) break;
    after = rows.at(-1)!.id;
  }
  await recordPurge(tx, list, 'rules');
  return changed;
}
