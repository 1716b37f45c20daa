// muster.named_tokens: tokens of the admin API, each with a name and a role. A token is active until it is revoked or expires; one active token
// has a name, so that the audit tells them apart. No other lock is taken after one.
import { MusterError } from '../../core/errors.js';
import { type NamedToken, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { newestFirst, type Page, type PageQuery, pageBySeq, pageOf, readStart } from '../statements/cursor.js';
import { folded, foldText } from '../statements/folding.js';

/** Roles, the weakest first. */
export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface NamedTokenRow extends Omit<NamedToken, 'role' | 'tokenHash' | 'revokedAt'> {
  readonly role: Role;
}

export interface NewNamedToken {
  readonly name: string;
  readonly role: Role;
  readonly tokenHash: string;
  readonly createdBy: string;
  readonly expiresAt?: Date | undefined;
}

/** Returns the id. Throws `token_name_taken` while another active token has this name. */
export async function insertNamedToken(tx: Transaction, token: NewNamedToken): Promise<string> {
  const { name, role, tokenHash, createdBy, expiresAt = null } = token;
  // An index cannot tell that a token has expired: an expired token gives up its name when it is wanted.
  await tx.$executeRaw`
    UPDATE muster.named_tokens SET revoked_at = expires_at
    WHERE lower(name) = lower(${name}) AND revoked_at IS NULL AND expires_at <= now()`;
  const [row] = await tx.$queryRaw<{ id: string }[]>`
    INSERT INTO muster.named_tokens (name, role, token_hash, created_by, expires_at)
    VALUES (${name}, ${role}, ${tokenHash}, ${createdBy}, ${expiresAt}::timestamptz)
    ON CONFLICT DO NOTHING RETURNING id::text`;
  if (row) return row.id;
  throw new MusterError(
    'token_name_taken',
    `There is a token named ${name}: choose another name, or delete that token first (GET /api/tokens lists them).`,
  );
}

/** Revokes a token permanently; returns its name. Throws `token_not_found`. */
export async function revokeNamedToken(tx: Transaction, { id }: { readonly id: string }): Promise<string> {
  const [row] = await tx.$queryRaw<{ name: string }[]>`
    UPDATE muster.named_tokens SET revoked_at = now() WHERE id = ${id}::uuid AND revoked_at IS NULL RETURNING name`;
  if (row) return row.name;
  throw new MusterError('token_not_found', `There is no token ${id}: GET /api/tokens lists them.`);
}

export const TOKEN_ORDERS = ['made', 'name', 'role', 'expires', 'last_used'] as const;
export type TokenOrder = (typeof TOKEN_ORDERS)[number];

export interface TokenFilter {
  /** Part of the name, in any letter case and with or without diacritics. */
  readonly search?: string | undefined;
}

export type TokenQuery = TokenFilter &
  PageQuery & {
    /** Newest first unless given. */
    readonly sort?: TokenOrder | undefined;
    readonly isDescending?: boolean | undefined;
  };

const micros = (time: Prisma.Sql) => Prisma.sql`(extract(epoch FROM ${time}) * 1000000)::bigint`;
const LAST = Prisma.sql`999999999999999999::bigint`;

const KEYS: Readonly<Record<TokenOrder, Prisma.Sql>> = {
  made: Prisma.sql`-t.seq`,
  name: Prisma.sql`(${folded(Prisma.sql`t.name`)} COLLATE "C")`,
  role: Prisma.sql`array_position(${[...ROLES]}::text[], t.role)::bigint`,
  expires: Prisma.sql`COALESCE(${micros(Prisma.sql`t.expires_at`)}, ${LAST})`,
  last_used: Prisma.sql`COALESCE(${micros(Prisma.sql`t.last_used_at`)}, 0)`,
};

/** Tokens that are not revoked, including expired ones. Throws `invalid_request` for a cursor that no response gave. */
export async function listNamedTokens(db: Database, query: TokenQuery): Promise<Page<NamedTokenRow>> {
  const { limit, cursor, search, sort = 'made', isDescending = false } = query;
  if (sort === 'made' && !isDescending && search === undefined) return listNewestTokens(db, { limit, cursor });
  const start = readStart(cursor, sort === 'name' ? /^\d{1,18}\|[^\0]{1,1000}$/ : /^\d{1,18}\|-?\d{1,18}$/);
  const [seq, ...rest] = start?.position.split('|') ?? [];
  const key = sort === 'name' ? Prisma.sql`${rest.join('|')}::text` : Prisma.sql`${BigInt(rest[0] ?? 0)}::bigint`;
  const isReversed = isDescending !== (start?.isBefore === true);
  const after = seq
    ? Prisma.sql`WHERE (key, seq) ${Prisma.raw(isReversed ? '<' : '>')} (${key}, ${BigInt(seq)}::bigint)`
    : Prisma.empty;
  const [direction, shown] = [isReversed, isDescending].map((isDown) => Prisma.raw(isDown ? 'DESC' : 'ASC'));
  const rows = await db.prisma.$queryRaw<(NamedTokenRow & { key: string })[]>`
    SELECT id::text, seq, name, role, created_at AS "createdAt", created_by AS "createdBy", expires_at AS "expiresAt", last_used_at AS "lastUsedAt",
      key::text AS key
    FROM (
      SELECT * FROM (SELECT t.*, ${KEYS[sort]} AS key FROM muster.named_tokens t WHERE ${isListed(query)}) sorted ${after}
      ORDER BY key ${direction}, seq ${direction} LIMIT ${limit + 1}::int
    ) page ORDER BY page.key ${shown}, seq ${shown}`;
  return pageOf(rows, limit, (row) => `${row.seq}|${row.key}`, start ?? null);
}

/** Reads a page by an index. */
async function listNewestTokens(db: Database, query: PageQuery): Promise<Page<NamedTokenRow>> {
  const page = newestFirst({ ...query, revokedAt: null });
  const rows = await db.prisma.namedToken.findMany({ ...page, omit: { tokenHash: true, revokedAt: true } });
  return pageBySeq(rows as NamedTokenRow[], query);
}

/** How many tokens match, on all pages. */
export async function countNamedTokens(db: Database, filter: TokenFilter): Promise<number> {
  const [row] = await db.prisma.$queryRaw<[{ count: number }]>`
    SELECT count(*)::int AS count FROM muster.named_tokens t WHERE ${isListed(filter)}`;
  return row.count;
}

function isListed({ search }: TokenFilter): Prisma.Sql {
  const isFound =
    search === undefined
      ? Prisma.sql`TRUE`
      : Prisma.sql`position(${foldText(search)}::text IN ${folded(Prisma.sql`t.name`)}) > 0`;
  return Prisma.sql`t.revoked_at IS NULL AND ${isFound}`;
}

export interface ActiveToken {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly tokenHash: string;
  /** Whether its last use is stored, to the minute. */
  readonly isMarked: boolean;
}

/** The active tokens among these hashes. */
export function findActiveTokens(db: Pick<Database, 'prisma'>, hashes: readonly string[]): Promise<ActiveToken[]> {
  return db.prisma.$queryRaw<ActiveToken[]>`
    SELECT id::text, name, role, token_hash AS "tokenHash", COALESCE(last_used_at > now() - interval '1 minute', false) AS "isMarked"
    FROM muster.named_tokens
    WHERE token_hash = ANY(${hashes}::text[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`;
}

/** The active ones among these tokens. */
export async function findActiveTokenIds(db: Pick<Database, 'prisma'>, ids: readonly string[]): Promise<string[]> {
  const rows = await db.prisma.$queryRaw<{ id: string }[]>`
    SELECT id::text FROM muster.named_tokens
    WHERE id = ANY(${ids}::uuid[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`;
  return rows.map(({ id }) => id);
}

/** Stores that these tokens are used now, unless a use within the last minute is stored. */
export async function markUse(db: Pick<Database, 'prisma'>, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.prisma.$executeRaw`
    UPDATE muster.named_tokens SET last_used_at = now()
    WHERE id = ANY(${ids}::uuid[]) AND COALESCE(last_used_at <= now() - interval '1 minute', true)`;
}

/** Removes tokens that were revoked more than `days` ago, at most `limit` of them. Returns how many. */
export function removeOldNamedTokens(db: Database, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.named_tokens WHERE id IN (
      SELECT id FROM muster.named_tokens WHERE revoked_at < now() - ${days}::int * interval '1 day' LIMIT ${limit}::int)`;
}
