import type { CompanyKey } from '../core/company.js';
import type { Transaction } from '../db/transaction.js';

/**
 * Takes everything that was received for a company out of schema mirror: the rows of every table that keeps rows by company,
 * whichever resources the catalogue has or had, and the data of its changes. Consumers learn of it by a `delete` without data
 * for every row that was living. The caller holds the company's connection and lists, so that no walk writes beside it.
 */
export async function eraseCompany(tx: Transaction, company: CompanyKey): Promise<void> {
  const { environment, companyId } = company;
  const tables = await tx.$queryRaw<{ resource: string; quoted: string; isList: boolean }[]>`
    SELECT t.table_name AS resource, quote_ident(t.table_name) AS quoted, bool_or(c.column_name = 'id') AS "isList"
    FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name)
    WHERE t.table_schema = 'mirror' AND t.table_type = 'BASE TABLE'
    GROUP BY t.table_name
    HAVING count(*) FILTER (WHERE c.column_name IN ('environment', 'company_id')) = 2
    ORDER BY t.table_name`;
  // Retention and numbering lock batches in this order, and changes behind them.
  await tx.$executeRaw`
    SELECT 1 FROM muster.change_batches WHERE environment = ${environment} AND company_id = ${companyId}::uuid ORDER BY id FOR UPDATE`;
  await tx.$executeRaw`
    UPDATE muster.changes c SET data = NULL FROM muster.change_batches b
    WHERE c.batch_id = b.id AND b.environment = ${environment} AND b.company_id = ${companyId}::uuid AND c.data IS NOT NULL`;
  await tx.changeBatch.updateMany({ where: { ...company, texts: { not: null } }, data: { texts: null } });
  for (const { resource, quoted, isList } of tables) {
    if (isList) await tx.$executeRawUnsafe(feedDeletes(quoted), environment, companyId, resource);
    await tx.$executeRawUnsafe(
      `DELETE FROM mirror.${quoted} WHERE environment = $1 AND company_id = $2::uuid`,
      environment,
      companyId,
    );
  }
}

const feedDeletes = (table: string) => `
WITH living AS (
  SELECT id FROM mirror.${table} WHERE environment = $1 AND company_id = $2::uuid AND deleted_at IS NULL
), batch AS (
  INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
  SELECT count(*)::int, $1, $2::uuid, $3, now() FROM living HAVING count(*) > 0 RETURNING id
)
INSERT INTO muster.changes (batch_id, position, record_id, op)
SELECT batch.id, row_number() OVER (ORDER BY living.id) - 1, living.id, 'delete' FROM batch, living`;
