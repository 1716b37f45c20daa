// muster.idempotency_keys holds the POSTs that callers have named, and the encrypted responses. The process that takes a key does the work, and renews
// its lease until it writes the response. Each write names the epoch under which the key was taken. Each function runs one statement at a time and
// takes no other lock. All times are the database's.
import type { IdempotencyKey } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';

/** Names a row. */
export type KeyOwner = Pick<IdempotencyKey, 'owner' | 'keyHash'>;
/** A taken key is the right to do the work. */
export type TakenKey = KeyOwner & Pick<IdempotencyKey, 'epoch'>;

/** A response is repeated for so long, and its key stays bound to the request. */
const KEPT_HOURS = 24;

/** A lease is longer than a process may stand still, and short enough to wait for when a process has died. */
const LEASE_SECONDS = 15;
export const RENEW_EVERY_MS = 3_000;

/**
 * Takes a key that is new, older than a day, or whose attempts have all failed. Otherwise returns the response that is kept, or says that the first
 * request is still under way or was another one.
 */
export async function takeKey(
  db: Database,
  request: KeyOwner & Pick<IdempotencyKey, 'requestHash'>,
): Promise<{ readonly taken: TakenKey } | { readonly answer: string } | 'under_way' | 'another_request'> {
  const { owner, keyHash, requestHash } = request;
  for (;;) {
    const [taken] = await db.prisma.$queryRaw<Pick<TakenKey, 'epoch'>[]>`
      INSERT INTO muster.idempotency_keys AS k (owner, key_hash, request_hash, lease_until)
      VALUES (${owner}, ${keyHash}, ${requestHash}, now() + make_interval(secs => ${LEASE_SECONDS}))
      ON CONFLICT (owner, key_hash) DO UPDATE SET epoch = k.epoch + 1, request_hash = EXCLUDED.request_hash, answer = NULL,
        lease_until = EXCLUDED.lease_until,
        created_at = CASE WHEN k.created_at < now() - make_interval(hours => ${KEPT_HOURS}) THEN now() ELSE k.created_at END
      WHERE (k.lease_until IS NULL OR k.lease_until < now())
        AND (k.created_at < now() - make_interval(hours => ${KEPT_HOURS}) OR (k.answer IS NULL AND k.request_hash = EXCLUDED.request_hash))
      RETURNING epoch`;
    if (taken) return { taken: { owner, keyHash, epoch: taken.epoch } };
    const found = await db.prisma.idempotencyKey.findUnique({ where: { owner_keyHash: { owner, keyHash } } });
    // Between the two the key was given up, or removed for its age.
    if (!found) continue;
    if (found.requestHash !== requestHash) return 'another_request';
    return found.answer === null ? 'under_way' : { answer: found.answer };
  }
}

/** Renews the leases of work that goes on. */
export async function renewKeys(db: Database, { keys }: { keys: readonly TakenKey[] }): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.idempotency_keys k SET lease_until = now() + make_interval(secs => ${LEASE_SECONDS})
    FROM unnest(${keys.map(({ owner }) => owner)}::text[], ${keys.map(({ keyHash }) => keyHash)}::text[], ${keys.map(({ epoch }) => epoch)}::int[])
      AS taken(owner, key_hash, epoch)
    WHERE k.owner = taken.owner AND k.key_hash = taken.key_hash AND k.epoch = taken.epoch AND k.lease_until IS NOT NULL`;
}

/** Keeps the response. Does nothing where the lease has lapsed and another attempt has begun. */
export async function keepAnswer(db: Database, { answer, ...key }: TakenKey & { answer: string }): Promise<void> {
  await db.prisma.idempotencyKey.updateMany({ where: key, data: { answer, leaseUntil: null } });
}

/** The attempt has failed: the same request may be sent again under the key. */
export async function giveUpKey(db: Database, key: TakenKey): Promise<void> {
  await db.prisma.idempotencyKey.updateMany({ where: key, data: { leaseUntil: null } });
}

/** No work was begun: the key becomes free again. */
export async function freeKey(db: Database, key: TakenKey): Promise<void> {
  await db.prisma.idempotencyKey.deleteMany({ where: key });
}

/** Finds the responses that are kept, for a change of the encryption key. */
export function findAnswers(db: Database): Promise<(KeyOwner & { readonly answer: string })[]> {
  return db.prisma.$queryRaw`SELECT owner, key_hash AS "keyHash", answer FROM muster.idempotency_keys WHERE answer IS NOT NULL`;
}

/** Replaces a response unless it has changed. Returns the number of rows that were written. */
export async function replaceAnswer(
  db: Database,
  { owner, keyHash, answer, again }: KeyOwner & { answer: string; again: string },
): Promise<number> {
  const { count } = await db.prisma.idempotencyKey.updateMany({ where: { owner, keyHash, answer }, data: { answer: again } });
  return count;
}

/** Removes keys that are older than a day, at most `limit` of them, oldest first. Returns how many. */
export function removeOldKeys(db: Database, { limit }: { limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.idempotency_keys WHERE (owner, key_hash) IN (
      SELECT owner, key_hash FROM muster.idempotency_keys
      WHERE created_at < now() - make_interval(hours => ${KEPT_HOURS}) AND (lease_until IS NULL OR lease_until < now())
      ORDER BY created_at LIMIT ${limit}::int)`;
}
