// muster.sessions: sessions of the control room. Signing in inserts a row, requests move `seen_at`, signing out deletes it. All times are
// the database's. No other lock is taken with one.
import { Prisma, type Session } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';

export type SessionRow = Pick<Session, 'name' | 'role' | 'tokenId' | 'tokenProof'>;

/** A session ends after this time without a request: a working day. */
const IDLE_SECONDS = 8 * 3_600;
/** The time of a request is stored once in this many seconds: a page with live parts sends requests all the time. */
const SEEN_SECONDS = 60;

/** SQL: neither the session `s` nor the named token `t` that began it has ended. */
const LIVES = Prisma.sql`s.ends_at > now() AND s.seen_at > now() - make_interval(secs => ${IDLE_SECONDS}::int)
  AND (s.token_id IS NULL OR (t.revoked_at IS NULL AND COALESCE(t.expires_at > now(), TRUE)))`;
const SESSIONS = Prisma.sql`muster.sessions s LEFT JOIN muster.named_tokens t ON t.id = s.token_id`;

/** `wholeSeconds`: its longest lifetime, however much it is used. */
export async function insertSession(
  tx: Transaction,
  {
    idHash,
    name,
    role,
    tokenId,
    tokenProof,
    wholeSeconds,
  }: SessionRow & { readonly idHash: string; readonly wholeSeconds: number },
): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO muster.sessions (id_hash, name, role, token_id, token_proof, ends_at)
    VALUES (${idHash}, ${name}, ${role}, ${tokenId}::uuid, ${tokenProof}, now() + make_interval(secs => ${wholeSeconds}::int))`;
}

/** The session, marked as seen, if neither it nor the named token that began it has ended. */
export async function findSession(db: Database, { idHash }: { readonly idHash: string }): Promise<SessionRow | undefined> {
  const [found] = await db.prisma.$queryRaw<(SessionRow & { isStale: boolean })[]>`
    SELECT s.name, s.role, s.token_id::text AS "tokenId", s.token_proof AS "tokenProof",
      s.seen_at < now() - make_interval(secs => ${SEEN_SECONDS}::int) AS "isStale"
    FROM ${SESSIONS} WHERE s.id_hash = ${idHash} AND ${LIVES}`;
  if (!found) return undefined;
  if (found.isStale) await db.prisma.$executeRaw`UPDATE muster.sessions SET seen_at = now() WHERE id_hash = ${idHash}`;
  const { isStale: _, ...session } = found;
  return session;
}

/** The sessions among these that have not ended. Does not mark them as seen. */
export async function findActiveSessionIds(db: Pick<Database, 'prisma'>, idHashes: readonly string[]): Promise<string[]> {
  const rows = await db.prisma.$queryRaw<{ idHash: string }[]>`
    SELECT s.id_hash AS "idHash" FROM ${SESSIONS} WHERE s.id_hash = ANY(${idHashes}::text[]) AND ${LIVES}`;
  return rows.map(({ idHash }) => idHash);
}

export async function deleteSession(db: Database, { idHash }: { readonly idHash: string }): Promise<void> {
  await db.prisma.session.deleteMany({ where: { idHash } });
}

/** Removes sessions that have ended for lack of use, at most `limit` of them. */
export async function removeIdleSessions(db: Database, { limit }: { readonly limit: number }): Promise<void> {
  await db.prisma.$executeRaw`
    DELETE FROM muster.sessions WHERE id_hash IN (
      SELECT id_hash FROM muster.sessions WHERE seen_at < now() - make_interval(secs => ${IDLE_SECONDS}::int)
      ORDER BY seen_at LIMIT ${limit}::int)`;
}
