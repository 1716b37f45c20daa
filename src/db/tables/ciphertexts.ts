// The encrypted columns of muster.tokens and muster.quarantined_tokens, as key rotation reads and writes them: one ciphertext at a
// time, replaced only if it has not changed since it was read. No lock is held between two of them.
import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Reader } from '../connection/read-only.js';
import { isOf } from './connections.js';

/** A column that holds ciphertexts. */
export interface SealedColumn {
  readonly table: 'tokens' | 'quarantined_tokens';
  readonly field: 'access_token' | 'refresh_token';
}

export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'tokens', field: 'access_token' },
  { table: 'tokens', field: 'refresh_token' },
  { table: 'quarantined_tokens', field: 'refresh_token' },
];

export function findCiphertexts(db: Database, column: SealedColumn): Promise<(CompanyKey & { readonly sealed: string })[]> {
  const { table, field } = rawNames(column);
  return db.prisma.$queryRaw`
    SELECT environment, company_id::text AS "companyId", ${field} AS sealed FROM ${table} WHERE ${field} IS NOT NULL`;
}

/** Reads ciphertexts for a caller that changes nothing. */
export async function readCiphertexts(
  db: Reader,
  { table, field }: SealedColumn,
): Promise<(CompanyKey & { readonly sealed: string })[]> {
  const { rows } = await db.query<CompanyKey & { sealed: string }>(
    `SELECT environment, company_id::text AS "companyId", ${field} AS sealed FROM muster.${table} WHERE ${field} IS NOT NULL`,
  );
  return rows;
}

/** Some ciphertexts that were made with the key of this id. */
export async function findSomeCiphertexts(
  db: Database,
  { key, limit }: { readonly key: string; readonly limit: number },
): Promise<(CompanyKey & Pick<SealedColumn, 'field'> & { readonly sealed: string })[]> {
  const start = `v1.${key}.`;
  const columns = SEALED_COLUMNS.map((column) => {
    const { table, field } = rawNames(column);
    return Prisma.sql`(SELECT environment, company_id::text AS "companyId", ${column.field} AS field, ${field} AS sealed
      FROM ${table} WHERE starts_with(${field}, ${start}) LIMIT ${limit}::int)`;
  });
  return db.prisma.$queryRaw`${Prisma.join(columns, ' UNION ALL ')}`;
}

/** Replaces a ciphertext unless it has changed since it was read. Returns the number of rows written. */
export function replaceCiphertext(
  db: Database,
  { company, sealed, again, ...column }: SealedColumn & { company: CompanyKey; sealed: string; again: string },
): Promise<number> {
  const { table, field } = rawNames(column);
  return db.prisma.$executeRaw`UPDATE ${table} SET ${field} = ${again} WHERE ${isOf(company)} AND ${field} = ${sealed}`;
}

/** How many ciphertexts need each key, with one of their companies. */
export function countCiphertextsByKey(
  db: Database,
): Promise<{ readonly key: string; readonly tokens: number; readonly example: CompanyKey }[]> {
  const sealed = SEALED_COLUMNS.map(rawNames).map(
    ({ table, field }) => Prisma.sql`SELECT environment, company_id::text AS "companyId", ${field} AS sealed FROM ${table}`,
  );
  return db.prisma.$queryRaw`
    SELECT key, count(*)::int AS tokens,
           (array_agg(jsonb_build_object('environment', environment, 'companyId', "companyId") ORDER BY environment, "companyId"))[1] AS example
    FROM (SELECT *, substring(sealed FROM '^v1\\.(.+)\\.[A-Za-z0-9_-]+$') AS key FROM (${Prisma.join(sealed, ' UNION ALL ')}) AS texts) AS ids
    WHERE key IS NOT NULL GROUP BY key ORDER BY key`;
}

function rawNames({ table, field }: SealedColumn): { readonly table: Prisma.Sql; readonly field: Prisma.Sql } {
  return { table: Prisma.raw(`muster.${table}`), field: Prisma.raw(field) };
}
