// muster.tokens, the access tokens that are refused everywhere: since when, and which list says otherwise.
import type { CompanyKey } from '../../core/company.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { isOf } from './connections.js';

/**
 * A condition on a row `t`: a token was refused everywhere so long ago that an API which refuses everything for some seconds has had its time, and a company that was revoked is
 * still noticed within a minute.
 */
export const IS_REFUSED_FOR_LONG = Prisma.sql`(t.refused_at IS NOT NULL AND t.refused_at <= now() - interval '30 seconds')`;

/** A condition on a row `t`: the pair is not so old that the service may have outdated it, nor of the time when one was first refused everywhere. */
export const IS_JUST_RENEWED = Prisma.sql`(t.expires_at > now() AND t.refreshed_at > now() - interval '60 seconds'
  AND NOT (${IS_REFUSED_FOR_LONG} AND t.refreshed_at <= t.refused_at))`;

/** A token that was just renewed is refused everywhere; the first time counts, unless it is ahead of a clock that went back. */
export async function recordRefused(tx: Transaction, company: CompanyKey): Promise<void> {
  await tx.$executeRaw`UPDATE muster.tokens SET refused_at = LEAST(COALESCE(refused_at, now()), now()) WHERE ${isOf(company)}`;
}

/** The API took a token. `witness`: the address that did, null where it is not to be asked again. */
export async function recordTaken(
  db: Database,
  { company, witness }: { company: CompanyKey; witness: string | null },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.tokens SET refused_at = NULL, witness = COALESCE(${witness}, witness)
    WHERE ${isOf(company)} AND (refused_at IS NOT NULL OR witness IS DISTINCT FROM COALESCE(${witness}, witness))`;
}
