// muster.rejected_records: a record that could not be kept, and why. Page writing inserts them with the page (mirror/page-writer.ts), under the lock of the
// list; they are deleted with their walk or by age, or move with its ledger (ledger.ts).
import type { CompanyKey } from '../../core/company.js';
import { Prisma, type RejectedRecord } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { type Page, type PageQuery, pageOf, readCursor } from '../statements/cursor.js';
import { inPieces } from '../statements/in-pieces.js';
import type { OfCompanies } from '../statements/newest-page.js';
import { isOf, rowsOf } from './connections.js';
import { isOfList, type ListKey } from './lists.js';

/** With its list and run. `text` is the record as received, in base64, cut to what `keptText` keeps. */
export type RejectedRecordRow = CompanyKey &
  Pick<RejectedRecord, 'id' | 'page' | 'position' | 'reason' | 'text'> & { readonly runId: string; readonly resource: string };

export type RejectedRecordFilter = Partial<CompanyKey & Pick<RejectedRecordRow, 'resource'>> & PageQuery & OfCompanies;

/** Rejected records kept per pass of a walk; more are only counted. */
export const MOST_KEPT = 1_000;
/** Bytes kept of a text. */
const MOST_BYTES = 8_192;
const MOST_BASE64 = 4 * Math.ceil(MOST_BYTES / 3);

/** The stored text of a rejected record: its beginning, if it is long. */
export function keptText(text: Buffer): string {
  return text.subarray(0, MOST_BYTES).toString('base64');
}

/** Whether only the beginning of a text was kept. Earlier versions kept whole texts. */
export function isCut(text: Buffer): boolean {
  return text.length >= MOST_BYTES;
}

const CURSOR = /^(production|test)\|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\|[a-z][a-z0-9_]*\|\d{1,18}$/;

/**
 * The records that the newest walk of each list rejected: by environment, company and resource, then in page order. Throws `invalid_request` for a cursor that
 * no response gave. An index finds the walks with rejected records; no more of them are read than a page holds.
 */
export async function listRejectedRecords(db: Database, filter: RejectedRecordFilter): Promise<Page<RejectedRecordRow>> {
  const { environment, companyId, companies, resource, limit, cursor } = filter;
  const [afterEnvironment, afterCompany, afterResource, afterId] =
    cursor === undefined ? [] : readCursor(cursor, CURSOR).split('|');
  const last = Prisma.sql`(${afterEnvironment}::text, ${afterCompany}::uuid, ${afterResource}::text)`;
  const list = Prisma.sql`(w.environment, w.company_id, w.resource)`;
  const conditions = [
    Prisma.sql`w.rejected > 0`,
    ...(environment ? [Prisma.sql`w.environment = ${environment}`] : []),
    ...(companyId ? [Prisma.sql`w.company_id = ${companyId}::uuid`] : []),
    ...(companies ? [Prisma.sql`(w.environment, w.company_id) IN (SELECT * FROM ${rowsOf(companies)})`] : []),
    ...(resource ? [Prisma.sql`w.resource = ${resource}`] : []),
    ...(afterId ? [Prisma.sql`${list} >= ${last}`] : []),
    // A value instead of a join keeps it a look-up per list. The planner assumes that a comparison with a value holds for one walk.
    Prisma.sql`(SELECT TRUE FROM muster.lists l
      WHERE l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource AND l.last_run_id = w.run_id)`,
  ];
  const goesOn = afterId
    ? Prisma.sql`AND r.id > CASE WHEN ${list} = ${last} THEN ${BigInt(afterId)}::bigint ELSE 0 END`
    : Prisma.empty;
  const rows = await db.prisma.$queryRaw<RejectedRecordRow[]>`
    SELECT r.id, w.run_id AS "runId", w.environment, w.company_id::text AS "companyId", w.resource, r.page, r.position, r.reason,
      left(r.text, ${MOST_BASE64}::int) AS text
    FROM muster.walks w CROSS JOIN LATERAL (
      SELECT r.* FROM muster.rejected_records r WHERE r.walk_id = w.id ${goesOn} ORDER BY r.id LIMIT ${limit + 1}::int) r
    WHERE ${Prisma.join(conditions, ' AND ')}
    ORDER BY w.environment, w.company_id, w.resource, r.id LIMIT ${limit + 1}::int`;
  return pageOf(rows, limit, (row) => `${row.environment}|${row.companyId}|${row.resource}|${row.id}`);
}

/** Removes all of a list's, or of a company's lists. The caller has locked them. */
export async function removeRejectedRecords(tx: Transaction, of: CompanyKey | ListKey): Promise<void> {
  const walks = 'resource' in of ? isOfList(of) : isOf(of);
  const query = Prisma.sql`
    SELECT id FROM muster.rejected_records WHERE walk_id IN (SELECT w.id FROM muster.walks w WHERE ${walks})`;
  for await (const rows of inPieces<{ id: bigint }>(tx, query)) await deleteRejected(tx, rows);
}

/** The rejected records of all walks of the list. The caller has locked the list. */
export function findRejected(tx: Transaction, list: ListKey): Promise<Pick<RejectedRecord, 'id' | 'text'>[]> {
  const { environment, companyId, resource } = list;
  return tx.rejectedRecord.findMany({ where: { walk: { environment, companyId, resource } }, select: { id: true, text: true } });
}

export async function deleteRejected(tx: Transaction, rows: readonly Pick<RejectedRecord, 'id'>[]): Promise<void> {
  await tx.$executeRaw`DELETE FROM muster.rejected_records WHERE id = ANY(${rows.map(({ id }) => id)}::bigint[])`;
}

/**
 * Removes rejected records of walks that ended more than `days` ago, at most `limit` of them, but not the rejects of a list's newest walk. Returns
 * how many.
 */
export function removeOldRejectedRecords(db: Database, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.rejected_records WHERE id IN (
      SELECT r.id FROM muster.rejected_records r JOIN muster.walks w ON w.id = r.walk_id
      WHERE w.finished_at < now() - ${days}::int * interval '1 day' AND NOT EXISTS (
        SELECT FROM muster.lists l
        WHERE l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource AND l.last_run_id = w.run_id)
      LIMIT ${limit}::int)`;
}
