// muster.tokens, the lease under which one process at a time refreshes a company's token, and what an attempt to refresh it leaves. A write under an older
// epoch finds no row.
import type { CompanyKey } from '../../core/company.js';
import type { ErrorCode } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { inTransaction, type Transaction } from '../connection/transaction.js';
import { isOf } from './connections.js';
import { IS_OURS } from './installation.js';
import type { RefusingAnswer } from './put-off-tokens.js';
import { beginTrial, MAY_GO_SIDE_BY_SIDE } from './refresh-breakers.js';
import { LEASE_MS, type Lease, type StoredToken } from './tokens.js';

interface Taking {
  readonly company: CompanyKey;
  /** The process. */
  readonly owner: string;
}

/**
 * Takes the lease and moves the epoch; undefined while another process has it, while the environment's refreshes do not go side by side, and in a database
 * that is not the installation's.
 */
export function takeLease({ prisma }: Database, taking: Taking): Promise<Lease | undefined> {
  return takeLeaseWhere(prisma, taking, MAY_GO_SIDE_BY_SIDE);
}

/** Takes the lease for a trial. Undefined during another trial of the environment. */
export function takeLeaseAlone(db: Database, taking: Taking): Promise<Lease | undefined> {
  return inTransaction(db, async (tx) => {
    const lease = await takeLeaseWhere(tx, taking, Prisma.sql`TRUE`);
    if (lease && !(await beginTrial(tx, { ...lease, leaseMs: LEASE_MS }))) throw new NotItsTurn();
    return lease;
  }).catch((error: unknown) => {
    if (error instanceof NotItsTurn) return undefined;
    throw error;
  });
}

/** Undoes the lease that was just taken. */
class NotItsTurn extends Error {}

async function takeLeaseWhere(tx: Transaction, { company, owner }: Taking, condition: Prisma.Sql): Promise<Lease | undefined> {
  const [row] = await tx.$queryRaw<{ epoch: bigint }[]>`
    UPDATE muster.tokens t
    SET epoch = epoch + 1, lease_owner = ${owner}, lease_until = clock_timestamp() + ${LEASE_MS}::float8 * interval '1 millisecond'
    WHERE ${isOf(company)} AND (lease_until IS NULL OR lease_until <= now()) AND ${IS_OURS} AND ${condition}
    RETURNING epoch`;
  return row && { company, epoch: row.epoch };
}

/**
 * A lease longer than the longest was written before the clock went back: an owner that died would keep the company
 * waiting for the length of the jump. The lease gets its whole length from now, in case its owner is running.
 */
export async function shortenLease(db: Database, company: CompanyKey): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.tokens SET lease_until = clock_timestamp() + ${LEASE_MS}::float8 * interval '1 millisecond'
    WHERE ${isOf(company)} AND lease_until > clock_timestamp() + ${LEASE_MS}::float8 * interval '1 millisecond'`;
}

/**
 * Stores, right before the refresh token is sent, that it is about to be: until its outcome is stored, the token is
 * unanswered, even if this process dies. False if the lease was lost or less than `neededMs` is left of
 * it: then the token must not be sent.
 */
export async function beginAttempt(db: Database, { company, epoch, neededMs }: Lease & { neededMs: number }): Promise<boolean> {
  const begun = await db.prisma.$executeRaw`
    UPDATE muster.tokens
    SET attempt_started_at = COALESCE(attempt_started_at, clock_timestamp()), ambiguous_attempts = 1
    WHERE ${isOf(company)} AND epoch = ${epoch}
      AND lease_until > clock_timestamp() + ${neededMs}::float8 * interval '1 millisecond'`;
  return begun > 0;
}

/**
 * Gives the lease back of an attempt that has not sent the refresh token. An earlier one without an outcome keeps having none. With `quietUntil`, the refresh is put
 * off to that end of quiet hours.
 */
export async function withdrawAttempt(
  db: Pick<Database, 'prisma'>,
  { company, epoch, isUnanswered }: Lease & Pick<StoredToken, 'isUnanswered'>,
  quietUntil: Date | null = null,
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.tokens SET lease_owner = NULL, lease_until = NULL,
      refresh_at = COALESCE(${quietUntil}::timestamptz, refresh_at), quiet_until = COALESCE(${quietUntil}::timestamptz, quiet_until),
      ambiguous_attempts = ${isUnanswered ? 1 : 0}::int,
      attempt_started_at = CASE WHEN ${isUnanswered}::boolean THEN attempt_started_at END
    WHERE ${isOf(company)} AND epoch = ${epoch}`;
}

/** Gives the lease back without an attempt. With `retryAfterSeconds`, the next attempt is made at that time at the earliest. */
export async function releaseLease(
  db: Database,
  { company, epoch, retryAfterSeconds = null }: Lease & { retryAfterSeconds?: number | null },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.tokens SET lease_owner = NULL, lease_until = NULL,
      refresh_at = COALESCE(now() + ${retryAfterSeconds}::float8 * interval '1 second', refresh_at)
    WHERE ${isOf(company)} AND epoch = ${epoch}`;
}

/** Gives the lease back after an attempt that granted nothing; the next one is made in `retryAfterSeconds`. */
export async function postponeRefresh(
  db: Database,
  attempt: Lease &
    Pick<StoredToken, 'isUnanswered' | 'putOffs'> & {
      failure: ErrorCode;
      retryAfterSeconds: number;
      notBeforeSeconds: number;
      answer: RefusingAnswer;
    },
): Promise<void> {
  const { status, error } = attempt.answer;
  await db.prisma.$executeRaw`
    UPDATE muster.tokens SET
      lease_owner = NULL, lease_until = NULL, ambiguous_attempts = ${attempt.isUnanswered ? 1 : 0}::int,
      attempt_started_at = CASE WHEN ${attempt.isUnanswered}::boolean THEN attempt_started_at END,
      transient_failures = transient_failures + 1, last_failure = ${attempt.failure}, put_offs = ${attempt.putOffs}::int,
      last_status = ${status ?? null}::int, last_error = ${error ?? null},
      refresh_at = now() + ${attempt.retryAfterSeconds}::float8 * interval '1 second',
      not_before = now() + ${attempt.notBeforeSeconds}::float8 * interval '1 second'
    WHERE ${isOf(attempt.company)} AND epoch = ${attempt.epoch}`;
}

/** Gives the lease back permanently, because the company must authorize again. False if it was lost, or a newer pair was stored. */
export async function abandonAttempt(
  tx: Transaction,
  { company, epoch, answer }: Lease & { answer: RefusingAnswer },
): Promise<boolean> {
  const abandoned = await tx.$executeRaw`
    UPDATE muster.tokens SET lease_owner = NULL, lease_until = NULL, attempt_started_at = NULL,
      last_status = ${answer.status ?? null}::int, last_error = ${answer.error ?? null}
    WHERE ${isOf(company)} AND epoch = ${epoch}`;
  return abandoned > 0;
}
