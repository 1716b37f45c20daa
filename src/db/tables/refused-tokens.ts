// muster.tokens, the access tokens that every list refuses: since when, and which list contradicts it.
import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { isOf } from './connections.js';

/**
 * SQL: token `t` was refused everywhere long enough ago that an API which refuses everything for some seconds has had its time, and a revoked company is
 * still noticed within a minute.
 */
export const IS_REFUSED_FOR_LONG = Prisma.sql`(t.refused_at IS NOT NULL AND t.refused_at <= now() - interval '30 seconds')`;

/** SQL: the pair of `t` is not so old that the service may have outdated it, and newer than the first refusal everywhere. */
export const IS_JUST_RENEWED = Prisma.sql`(t.expires_at > now() AND t.refreshed_at > now() - interval '60 seconds'
  AND NOT (${IS_REFUSED_FOR_LONG} AND t.refreshed_at <= t.refused_at))`;

/** Records that a token that was just renewed is refused everywhere; the first time counts, unless it is ahead of a clock that went back. */
export async function recordRefused(tx: Transaction, company: CompanyKey): Promise<void> {
  await tx.$executeRaw`UPDATE muster.tokens SET refused_at = LEAST(COALESCE(refused_at, now()), now()) WHERE ${isOf(company)}`;
}

/** Records that the API accepted a token. `witness`: the address that did, null if it should not be asked again. */
export async function recordTaken(
  db: Database,
  { company, witness }: { company: CompanyKey; witness: string | null },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.tokens SET refused_at = NULL, witness = COALESCE(${witness}, witness)
    WHERE ${isOf(company)} AND (refused_at IS NOT NULL OR witness IS DISTINCT FROM COALESCE(${witness}, witness))`;
}
