// muster.tokens, the access tokens that are refused everywhere: since when, and which list says otherwise.
import type { CompanyKey } from '../../core/company.js';
import type { Database } from '../database.js';
import type { Transaction } from '../transaction.js';
import { isOf } from './connections.js';

/** A token that was just renewed is refused everywhere; the first time counts, unless it is ahead of a clock that went back. */
export async function noteRefused(tx: Transaction, company: CompanyKey): Promise<void> {
  await tx.$executeRaw`UPDATE muster.tokens SET refused_at = LEAST(COALESCE(refused_at, now()), now()) WHERE ${isOf(company)}`;
}

/** The API took a token. `witness`: the address that did, null where it is not to be asked again. */
export async function noteTaken(
  db: Database,
  { company, witness }: { company: CompanyKey; witness: string | null },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.tokens SET refused_at = NULL, witness = COALESCE(${witness}, witness)
    WHERE ${isOf(company)} AND (refused_at IS NOT NULL OR witness IS DISTINCT FROM COALESCE(${witness}, witness))`;
}
