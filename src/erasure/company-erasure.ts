import type { CompanyKey } from '../core/company.js';
import type { Transaction } from '../db/connection/transaction.js';
import { textArray } from '../db/statements/array-literals.js';
import { inPieces } from '../db/statements/in-pieces.js';
import { purgeChanges } from '../db/tables/change-batches.js';
import { isOf } from '../db/tables/connections.js';
import { appendToFeed } from '../db/tables/feed-append.js';
import { Prisma } from '../generated/prisma/client.js';

/**
 * Takes everything that was received for a company out of schema mirror: the rows of every table that keeps rows by company,
 * whichever resources the catalogue has or had, and the data of its changes. Consumers learn of it by a `delete` without data
 * for every row that was living. The caller holds the company's connection and lists, so that no walk writes beside it.
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
    if (isList) await eraseList(tx, { company, resource, table });
    else await tx.$executeRaw`DELETE FROM ${table} WHERE ${isOf(company)}`;
  }
}

interface MirroredList {
  readonly company: CompanyKey;
  readonly resource: string;
  readonly table: Prisma.Sql;
}

/** Each piece of the rows goes together with its own batch of the feed. */
async function eraseList(tx: Transaction, { company, resource, table }: MirroredList): Promise<void> {
  const query = Prisma.sql`SELECT id FROM ${table} WHERE ${isOf(company)} ORDER BY id`;
  for await (const rows of inPieces<{ id: string }>(tx, query)) {
    const ids = textArray(rows.map(({ id }) => id));
    await tx.$executeRaw`
      WITH gone AS (
        DELETE FROM ${table} WHERE ${isOf(company)} AND id = ANY(${ids}::text[]) RETURNING id, deleted_at IS NULL AS is_living
      ), changed AS (
        SELECT id, NULL::jsonb AS data FROM gone WHERE is_living
      ), ${appendToFeed({ ...company, resource }, { op: 'delete' })}
      SELECT`;
  }
}
