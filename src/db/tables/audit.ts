// muster.audit: who did what. Rows are never changed, outlive the company that they are about, and go by age alone. No other lock is taken after one.
import { type CompanyKey, type Environment, keyText } from '../../core/company.js';
import { type AuditEntry, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { type Page, type PageQuery, pageOf, readNumberedStart } from '../statements/cursor.js';
import { FEW_COMPANIES, type OfCompanies, readNewest, rowsOfCompanies } from '../statements/newest-page.js';
import { isOf } from './connections.js';

/** The actor. An actor without a role used no token. */
export interface Actor {
  readonly name: string;
  readonly role: string | null;
}

export interface NewAuditEntry {
  readonly by: Actor;
  readonly action: string;
  readonly company?: CompanyKey | undefined;
  /** Null where no company is known. */
  readonly environment?: Environment;
  /** Plain JSON, nothing secret. */
  readonly details: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
}

export async function insertAuditEntry(
  tx: Transaction,
  { by: { name: actor, role }, action, company, environment, details }: NewAuditEntry,
): Promise<void> {
  await tx.auditEntry.create({
    data: { actor, role, action, ...(environment && { environment }), ...company, details: JSON.parse(JSON.stringify(details)) },
  });
}

/** Removes entries of more than `days` ago, at most `limit` of them, oldest first. Returns how many. */
export function removeOldAuditEntries(db: Database, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.audit WHERE id IN (
      SELECT id FROM (SELECT id, at FROM muster.audit ORDER BY id LIMIT ${limit}::int) oldest
      WHERE at < now() - ${days}::int * interval '1 day')`;
}

/**
 * The database's time, as a text with every digit. A question that is about to be put to the service takes it along, and
 * `wasRemovedSince` tells what became of the company before the answer.
 */
export async function databaseTime(tx: Pick<Transaction, '$queryRaw'>): Promise<string> {
  const [row] = await tx.$queryRaw<[{ time: string }]>`SELECT clock_timestamp()::text AS time`;
  return row.time;
}

/** The last statement of a removal; returns its time, which is that of the entry, and not of the transaction, which may have waited for locks. */
export async function insertRemoval(
  tx: Transaction,
  { company: { environment, companyId }, by: { name, role } }: { company: CompanyKey; by: Actor },
): Promise<string> {
  const [row] = await tx.$queryRaw<[{ at: string }]>`
    INSERT INTO muster.audit (at, actor, role, action, environment, company_id)
    VALUES (clock_timestamp(), ${name}, ${role}, 'company.remove', ${environment}, ${companyId}::uuid) RETURNING at::text`;
  return row.at;
}

/**
 * Whether the company was removed at or after `since`. The caller has locked the connection if there is one, and so waited for the
 * end of a removal under way. A removal that was refused left an entry with an outcome.
 */
export async function wasRemovedSince(tx: Transaction, company: CompanyKey, since: string): Promise<boolean> {
  const [row] = await tx.$queryRaw<[{ removed: boolean }]>`
    SELECT EXISTS (SELECT FROM muster.audit WHERE ${isOf(company)} AND action = 'company.remove'
      AND details ->> 'outcome' IS NULL AND at >= ${since}::text::timestamptz) AS removed`;
  return row.removed;
}

/** The companies that were removed at the time of their entry or later, by `keyText`. */
export async function removedSince(
  { prisma }: Database,
  entries: readonly (CompanyKey & { readonly at: string })[],
): Promise<ReadonlySet<string>> {
  const rows = await prisma.$queryRaw<CompanyKey[]>`
    SELECT DISTINCT e.environment, e.company_id::text AS "companyId"
    FROM unnest(${entries.map(({ environment }) => environment)}::text[], ${entries.map(({ companyId }) => companyId)}::uuid[],
      ${entries.map(({ at }) => at)}::text[]::timestamptz[]) AS e(environment, company_id, at)
    JOIN muster.audit a ON a.environment = e.environment AND a.company_id = e.company_id AND a.at >= e.at
    WHERE a.action = 'company.remove' AND a.details ->> 'outcome' IS NULL`;
  return new Set(rows.map(keyText));
}

export type AuditRow = AuditEntry;

export type AuditFilter = Partial<Pick<AuditEntry, 'actor' | 'action'> & CompanyKey> & PageQuery & OfCompanies;

/** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
export async function listAuditEntries(db: Database, { limit, cursor, ...filter }: AuditFilter): Promise<Page<AuditRow>> {
  const start = readNumberedStart(cursor);
  const { actor, action, environment, companyId, companies } = filter;
  const fixed = [
    actor !== undefined && Prisma.sql`t.actor = ${actor}`,
    action !== undefined && Prisma.sql`t.action = ${action}`,
    environment !== undefined && Prisma.sql`t.environment = ${environment}`,
    companyId !== undefined && Prisma.sql`t.company_id = ${companyId}::uuid`,
  ].filter((condition) => condition !== false);
  // The migration says why what a filter gives is ordered by -id.
  const isFiltered = fixed.length > 0 || (companies !== undefined && companies.length <= FEW_COMPANIES);
  if (start) {
    const { isBefore, position } = start;
    if (isFiltered) fixed.push(isBefore ? Prisma.sql`-t.id < ${-position}` : Prisma.sql`-t.id > ${-position}`);
    else fixed.push(isBefore ? Prisma.sql`t.id > ${position}` : Prisma.sql`t.id < ${position}`);
  }
  const [oldestFirst, newestFirst] = isFiltered ? ['-t.id DESC', '-t.id'] : ['t.id', 't.id DESC'];
  const end = Prisma.sql`ORDER BY ${Prisma.raw(start?.isBefore ? oldestFirst : newestFirst)} LIMIT ${limit + 1}`;
  const rowsWith = (more: readonly Prisma.Sql[]) => {
    const all = [...fixed, ...more];
    return Prisma.sql`
      SELECT t.* FROM muster.audit t ${all.length > 0 ? Prisma.sql`WHERE ${Prisma.join(all, ' AND ')}` : Prisma.empty} ${end}`;
  };
  const rows = await readNewest(
    db,
    { companies },
    (tx) => tx.$queryRaw<AuditRow[]>`
    SELECT id, at, actor, role, action, environment, company_id::text AS "companyId", details
    FROM (${rowsOfCompanies(companies, rowsWith, end)}) found ORDER BY id DESC`,
  );
  return pageOf(rows, limit, ({ id }) => String(id), start ?? null);
}
