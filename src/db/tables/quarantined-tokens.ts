// muster.quarantined_tokens: encrypted refresh tokens without a stored connection. Each may be the only way back to its company. They
// are limited in number and expire; a person or the removal of the company deletes them earlier. Lock order: connection, token.
import type { CompanyKey, Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { Prisma, type QuarantinedToken } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { type Page, type PageQuery, pageOf, readCursor } from '../statements/cursor.js';
import { isOf } from './connections.js';

/** Why a token could not be stored with a connection. */
export const QUARANTINE_REASONS = [
  /** Granted for another company than the requested one. */
  'another_company',
  /** The service did not say for which company. */
  'unnamed_company',
  /** The rest of its response is unusable: no access token, for instance. */
  'unusable_grant',
  /** A newer authorization was stored before it could be. */
  'overtaken',
  /** The database refused the company's rows. */
  'not_stored',
  /** Kept by an older version, which stored no reason. */
  'unknown',
] as const;
export type QuarantineReason = (typeof QUARANTINE_REASONS)[number];

/** Replaces the company of a token for which the service named none. */
export const UNNAMED = '00000000-0000-0000-0000-000000000000';

/**
 * Enough for every token that a person may still want, and few enough that a link, a company or a service that fails all night fills
 * nothing. The holder of a link can get its tokens again; any other token may exist nowhere else, and is dropped last.
 */
const MOST_OF_A_LINK = 3;
const MOST_OF_A_COMPANY = 5;
const MOST_IN_ALL = 1_000;

export interface NewQuarantinedToken {
  readonly company: CompanyKey;
  readonly sealed: string;
  readonly reason: QuarantineReason;
  readonly linkId?: string | undefined;
  /** The hash of the refresh token that was spent for this one; it replaces what was kept for the same one before. */
  readonly successorOf?: string | undefined;
}

/** Returns how many older tokens were dropped for it. */
export async function insertQuarantinedToken(tx: Transaction, token: NewQuarantinedToken): Promise<number> {
  const { company, sealed, reason, linkId = null, successorOf = null } = token;
  const { environment, companyId } = company;
  await deleteSuccessors(tx, { environment, successorOf });
  await tx.$executeRaw`
    INSERT INTO muster.quarantined_tokens (environment, company_id, refresh_token, reason, link_id, successor_of)
    VALUES (${environment}, ${companyId}::uuid, ${sealed}, ${reason}, ${linkId}::uuid, ${successorOf})`;
  let dropped = 0;
  for (const [condition, most] of [
    [Prisma.sql`link_id = ${linkId}::uuid`, MOST_OF_A_LINK],
    [isOf(company), MOST_OF_A_COMPANY],
    [Prisma.sql`true`, MOST_IN_ALL],
  ] as const)
    dropped += await tx.$executeRaw`
      DELETE FROM muster.quarantined_tokens WHERE id IN (
        SELECT id FROM muster.quarantined_tokens WHERE ${condition} ORDER BY link_id IS NULL DESC, id DESC OFFSET ${most}::int)`;
  return dropped;
}

export interface Successor extends CompanyKey {
  /** Encrypted. */
  readonly refreshToken: string;
}

/** The token that replaced the one with this hash and could not be stored, if there is one. */
export async function findSuccessor(
  tx: Pick<Transaction, 'quarantinedToken'>,
  where: { readonly environment: Environment; readonly successorOf: string },
): Promise<Successor | undefined> {
  const row = await tx.quarantinedToken.findFirst({ where, orderBy: { id: 'desc' } });
  return row ? { ...row, environment: where.environment } : undefined;
}

/** Deletes what was kept as successor of the token with this hash. */
export async function deleteSuccessors(
  tx: Transaction,
  { environment, successorOf }: { readonly environment: Environment; readonly successorOf: string | null },
): Promise<void> {
  if (successorOf !== null) await tx.quarantinedToken.deleteMany({ where: { environment, successorOf } });
}

/** Without the token itself. */
export interface QuarantinedTokenRow extends Omit<QuarantinedToken, 'environment' | 'reason' | 'refreshToken' | 'successorOf'> {
  readonly environment: Environment;
  readonly reason: QuarantineReason;
}

export type QuarantineFilter = Partial<CompanyKey> & PageQuery;

/** Newest first. Throws `invalid_request` for a cursor that no response gave. */
export async function listQuarantinedTokens(
  db: Database,
  { limit, cursor, ...filter }: QuarantineFilter,
): Promise<Page<QuarantinedTokenRow>> {
  const before = cursor === undefined ? undefined : BigInt(readCursor(cursor, /^\d{1,18}$/));
  const rows = await db.prisma.quarantinedToken.findMany({
    where: { ...filter, ...(before !== undefined && { id: { lt: before } }) },
    omit: { refreshToken: true, successorOf: true },
    orderBy: { id: 'desc' },
    take: limit + 1,
  });
  return pageOf(rows as QuarantinedTokenRow[], limit, ({ id }) => String(id));
}

/** Deletes one permanently; returns its company. Throws `quarantined_token_not_found`. */
export async function deleteQuarantinedToken(tx: Transaction, id: bigint): Promise<CompanyKey> {
  const [row] = await tx.$queryRaw<CompanyKey[]>`
    DELETE FROM muster.quarantined_tokens WHERE id = ${id} RETURNING environment, company_id::text AS "companyId"`;
  if (row) return row;
  throw new MusterError(
    'quarantined_token_not_found',
    `There is no quarantined token ${id}: GET /api/quarantined-tokens lists them.`,
  );
}

/** Deletes tokens received more than this many days ago. */
export async function removeOldQuarantinedTokens(db: Database, days: number): Promise<void> {
  await db.prisma.$executeRaw`
    DELETE FROM muster.quarantined_tokens WHERE received_at < now() - ${days}::int * interval '1 day'`;
}
