import type { CompanyKey } from '../core/company.js';
import type { Database } from '../db/database.js';
import { Prisma } from '../generated/prisma/client.js';
import type { Logger } from '../observability/logger.js';
import type { Keyring } from './keyring.js';
import { SEALED_COLUMNS } from './sealed-columns.js';
import { translated } from './translated.js';

/** A key that stored tokens need and that is not among MUSTER_ENCRYPTION_KEYS. */
interface MissingKey {
  readonly key: string;
  readonly tokens: number;
  /** One of the companies that cannot be synced without it. */
  readonly example: CompanyKey;
}

/** Says at the start, once for each key, what would otherwise be noticed company by company in the night. */
export async function warnOfMissingKeys(db: Pick<Database, 'prisma'>, keyring: Keyring, logger: Logger): Promise<void> {
  for (const { key, tokens, example } of await missingKeys(db, keyring)) {
    logger.error(
      { key, tokens, example },
      `${tokens} stored tokens need the encryption key "${key}", which is not among MUSTER_ENCRYPTION_KEYS: ` +
        'their companies cannot be synced. Add the key back behind the first one; "muster rotate-keys" lists the companies.',
    );
  }
}

/** Throws `database_unavailable`. */
async function missingKeys({ prisma }: Pick<Database, 'prisma'>, keyring: Keyring): Promise<MissingKey[]> {
  const sealed = SEALED_COLUMNS.map(
    ({ table, field }) =>
      Prisma.sql`SELECT environment, company_id::text AS "companyId", ${Prisma.raw(field)} AS sealed FROM muster.${Prisma.raw(table)}`,
  );
  const keys = await translated(
    prisma.$queryRaw<MissingKey[]>`
      SELECT key, count(*)::int AS tokens,
             (array_agg(jsonb_build_object('environment', environment, 'companyId', "companyId") ORDER BY environment, "companyId"))[1] AS example
      FROM (SELECT *, substring(sealed FROM '^v1\\.(.+)\\.[A-Za-z0-9_-]+$') AS key FROM (${Prisma.join(sealed, ' UNION ALL ')}) AS texts) AS ids
      WHERE key IS NOT NULL GROUP BY key ORDER BY key`,
  );
  return keys.filter(({ key }) => keyring.get(key) === undefined);
}
