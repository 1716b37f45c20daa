import type { CompanyKey } from '../core/company.js';
import { isMusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { Prisma } from '../generated/prisma/client.js';
import type { Cipher, TokenField } from './cipher.js';
import { SEALED_COLUMNS } from './sealed-columns.js';
import { translated } from './translated.js';

/** A token that could not be encrypted again. */
export interface UnreadableToken extends CompanyKey {
  readonly table: 'tokens' | 'quarantined_tokens';
  readonly field: TokenField;
  /** Id of the key that it needs; null when the text is no ciphertext at all. */
  readonly key: string | null;
  readonly reason: 'missing_key' | 'damaged';
}

export interface Rotation {
  /** Ciphertexts that were made again. */
  readonly rotated: number;
  readonly unreadable: readonly UnreadableToken[];
  /** Ciphertexts that somebody made with an older key meanwhile, again and again: a process whose first key is another. */
  readonly behind: number;
}

/** A pass finds what was written with an older key during the one before; a process that goes on with it is not outrun. */
const PASSES = 5;

/**
 * Encrypts again, with the first key, whatever another key of the ring had encrypted. When nothing is unreadable or behind,
 * the other keys may leave MUSTER_ENCRYPTION_KEYS. Safe beside running keepers, and when it is stopped and begun again: a
 * ciphertext that changed meanwhile is not touched but found by the next pass, unless the first key made it. Throws `database_unavailable`.
 */
export async function rotateKeys({ prisma }: Pick<Database, 'prisma'>, cipher: Cipher): Promise<Rotation> {
  let rotated = 0;
  for (let pass = 1; ; pass++) {
    const { done, unreadable, old } = await rotateOnce(prisma, cipher);
    rotated += done;
    if (old === unreadable.length) return { rotated, unreadable, behind: 0 };
    if (pass === PASSES) return { rotated, unreadable, behind: old - unreadable.length };
  }
}

/** `old`: how many ciphertexts of another key were found. */
async function rotateOnce(prisma: Database['prisma'], cipher: Cipher) {
  let done = 0;
  let old = 0;
  const unreadable: UnreadableToken[] = [];
  for (const { table, field } of SEALED_COLUMNS) {
    const [from, column] = [Prisma.raw(`muster.${table}`), Prisma.raw(field)];
    const rows = await translated(
      prisma.$queryRaw<(CompanyKey & { sealed: string })[]>`
        SELECT environment, company_id::text AS "companyId", ${column} AS sealed FROM ${from} WHERE ${column} IS NOT NULL`,
    );
    for (const { sealed, ...company } of rows.filter((row) => !cipher.isCurrent(row.sealed))) {
      old += 1;
      try {
        const again = cipher.seal(cipher.open(sealed, company, field), company, field);
        done += await translated(prisma.$executeRaw`
          UPDATE ${from} SET ${column} = ${again}
          WHERE environment = ${company.environment} AND company_id = ${company.companyId}::uuid AND ${column} = ${sealed}`);
      } catch (error) {
        if (!isMusterError(error, 'token_unreadable')) throw error;
        unreadable.push({ ...company, table, field, ...(error.details as Pick<UnreadableToken, 'key' | 'reason'>) });
      }
    }
  }
  return { done, unreadable, old };
}
