// muster.installation: one row that says in which database tokens are refreshed: the server's system identifier, the database's number, and the name in INSTALLATION.
// A copy has the same row, and differs from it. The first start writes it; `adopt` and `detach` change it.
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';

/**
 * `ours`: tokens may be refreshed here. `copied`: it is a copy of another database, or a restored backup, and no person has said yet what it is.
 * `detached`: a person has said that it is a copy.
 */
export const STANDINGS = ['ours', 'copied', 'detached'] as const;
export type Standing = (typeof STANDINGS)[number];

/** Before the first start there is nothing to differ from. */
const IS_HERE = Prisma.sql`i.other_name IS NULL
  AND COALESCE(i.system_identifier = s.system_identifier::text AND i.database_oid = d.oid::bigint, TRUE)`;
const HERE = Prisma.sql`pg_control_system() s, pg_database d WHERE d.datname = current_database()`;

/** A condition of any statement: whether tokens may be refreshed in this database. */
export const IS_OURS = Prisma.sql`EXISTS (SELECT FROM muster.installation i, ${HERE} AND NOT i.is_detached AND ${IS_HERE})`;

export async function readStanding(db: Pick<Transaction, '$queryRaw'>): Promise<Standing> {
  const [row] = await db.$queryRaw<{ standing: Standing }[]>`
    SELECT CASE WHEN i.is_detached THEN 'detached' WHEN ${IS_HERE} THEN 'ours' ELSE 'copied' END AS standing
    FROM muster.installation i, ${HERE}`;
  return row!.standing;
}

/**
 * Stores where this database is, unless that is stored already. A process whose INSTALLATION has another value than the stored one makes it a copy:
 * a clone of the whole server differs in nothing else.
 */
export async function claimInstallation({ prisma }: Pick<Database, 'prisma'>, name: string | null): Promise<void> {
  await prisma.$executeRaw`
    UPDATE muster.installation i SET system_identifier = s.system_identifier::text, database_oid = d.oid::bigint
    FROM ${HERE} AND i.system_identifier IS NULL`;
  if (name === null) return;
  await prisma.$executeRaw`UPDATE muster.installation SET name = ${name} WHERE name IS NULL`;
  await prisma.$executeRaw`UPDATE muster.installation SET other_name = ${name} WHERE name <> ${name}`;
}

/** Makes this database the installation. Its feed becomes another one unless `keepsFeed`. Returns the feed's id. */
export async function adoptInstallation(
  tx: Transaction,
  { name, keepsFeed }: { readonly name: string | null; readonly keepsFeed: boolean },
): Promise<string> {
  await tx.$executeRaw`
    UPDATE muster.installation i SET system_identifier = s.system_identifier::text, database_oid = d.oid::bigint, is_detached = FALSE,
      name = COALESCE(${name}, i.other_name, i.name), other_name = NULL
    FROM ${HERE}`;
  const [feed] = await tx.$queryRaw<{ id: string }[]>`
    UPDATE muster.change_sequence SET feed_id = CASE WHEN ${keepsFeed} THEN feed_id ELSE gen_random_uuid() END RETURNING feed_id AS id`;
  return feed!.id;
}

/** Marks this database as a copy, and deletes its tokens: they belong to the installation. */
export async function detachInstallation(tx: Transaction): Promise<void> {
  await tx.$executeRaw`UPDATE muster.installation SET is_detached = TRUE`;
  await tx.$executeRaw`UPDATE muster.connections SET reauthorization_reason = 'detached', status_changed_at = now() WHERE reauthorization_reason IS NULL`;
  await tx.$executeRaw`DELETE FROM muster.tokens`;
  await tx.$executeRaw`DELETE FROM muster.quarantined_tokens`;
}
