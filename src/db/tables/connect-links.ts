// muster.connect_links: single-use links that start the authorization flow for a customer. Only the hash of a token is kept. Code
// exchanges advance the epoch and complete the link. Lock order: connection, token, link.
import type { Environment } from '../../core/company.js';
import type { ConnectLink } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';

export interface ConnectLinkRow extends Omit<ConnectLink, 'environment' | 'createdAt'> {
  readonly environment: Environment;
}

/** Inserts the links that are missing. A link without a company is for the one chosen on the consent screen. */
export async function insertConnectLinks(
  db: Database,
  { links, expiresAt }: { links: readonly Omit<ConnectLinkRow, 'epoch' | 'expiresAt' | 'completedAt'>[]; expiresAt: Date },
): Promise<void> {
  if (links.length === 0) return;
  await db.prisma.$executeRaw`
    INSERT INTO muster.connect_links (id, token_hash, environment, company_id, expires_at)
    SELECT *, ${expiresAt}::timestamptz FROM unnest(${links.map(({ id }) => id)}::uuid[], ${links.map(({ tokenHash }) => tokenHash)}::text[],
      ${links.map(({ environment }) => environment)}::text[], ${links.map(({ companyId }) => companyId)}::uuid[])
    ON CONFLICT DO NOTHING`;
}

export async function findConnectLink(
  db: Database,
  where: { readonly id: string } | { readonly tokenHash: string },
): Promise<ConnectLinkRow | undefined> {
  return ((await db.prisma.connectLink.findUnique({ where })) ?? undefined) as ConnectLinkRow | undefined;
}

/** Removes links that expired more than `days` ago, at most `limit` of them, whether or not they were used. Returns how many. */
export function removeOldConnectLinks(db: Database, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.connect_links WHERE id IN (
      SELECT id FROM muster.connect_links WHERE expires_at < now() - ${days}::int * interval '1 day' LIMIT ${limit}::int)`;
}

/**
 * Spends every state that was signed for this epoch. True for one caller, however many come at once. An exchange that is under
 * way for an earlier epoch can no longer complete the link.
 */
export async function advanceConnectLink(db: Database, { id, epoch }: { id: string; epoch: number }): Promise<boolean> {
  const advanced = await db.prisma.$executeRaw`
    UPDATE muster.connect_links SET epoch = epoch + 1 WHERE id = ${id}::uuid AND epoch = ${epoch} AND completed_at IS NULL`;
  return advanced > 0;
}

/** Spends the link, for the exchange that advanced it from this epoch. Harmless when repeated. */
export async function completeConnectLink(
  tx: Transaction,
  { id, epoch, at }: { id: string; epoch: number; at: Date },
): Promise<boolean> {
  const completed = await tx.$executeRaw`
    UPDATE muster.connect_links SET completed_at = ${at} WHERE id = ${id}::uuid AND epoch = ${epoch + 1}`;
  return completed > 0;
}
