// muster.request_budgets: what all workers together may ask of an environment's API. Workers lease slots of its schedule and store what
// a refusal taught, each in one statement that names the version that it read; only rows of muster.request_shares are locked after its row.
// Times are by the database's clock, and are returned as durations.
import type { Environment } from '../../core/company.js';
import type { RequestBudget } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';

export interface BudgetRow
  extends Pick<RequestBudget, 'version' | 'rate' | 'fallback' | 'seeking' | 'progress' | 'announced' | 'atOnce'> {
  /** Seconds since the last change. */
  readonly elapsed: number;
  /** Seconds of these in which no worker was to ask. */
  readonly paused: number;
  /** Seconds until a worker may ask again; 0 = now. */
  readonly pause: number;
  /** Seconds of the schedule that are leased and still to come. */
  readonly lead: number;
}

/** Adds the environment's row if it is missing. */
export async function addBudget(db: Database, { environment }: { environment: Environment }): Promise<void> {
  await db.prisma.$executeRaw`INSERT INTO muster.request_budgets (environment) VALUES (${environment}) ON CONFLICT DO NOTHING`;
}

/** A clock that jumped back lengthens no pause. */
export async function readBudget(db: Database, { environment }: { environment: Environment }): Promise<BudgetRow | undefined> {
  const [row] = await db.prisma.$queryRaw<BudgetRow[]>`
    SELECT version, rate, fallback, seeking, progress, announced, at_once AS "atOnce",
      GREATEST(0, extract(epoch FROM clock_timestamp() - changed_at))::float8 AS elapsed,
      GREATEST(0, extract(epoch FROM resumes_at - changed_at))::float8 AS paused,
      GREATEST(0, LEAST(extract(epoch FROM resumes_at - clock_timestamp()), extract(epoch FROM resumes_at - changed_at)))::float8 AS pause,
      GREATEST(0, extract(epoch FROM next_slot_at - clock_timestamp()))::float8 AS lead
    FROM muster.request_budgets WHERE environment = ${environment}`;
  return row;
}

/**
 * Leases the schedule's next slots, `interval` seconds apart; undefined if the version has changed. `startsAt`: the first one, and
 * `now`, in milliseconds by the database's clock. Slots are leased some seconds ahead at most: a slot further ahead was leased before
 * the clock jumped back.
 */
export async function leaseSlots(
  db: Database,
  { environment, version, slots, interval }: { environment: Environment; version: number; slots: number; interval: number },
): Promise<{ startsAt: number; now: number; progress: number } | undefined> {
  const seconds = slots * interval;
  const furthest = 60 + 10 * seconds;
  const [row] = await db.prisma.$queryRaw<{ startsAt: number; now: number; progress: number }[]>`
    UPDATE muster.request_budgets SET progress = progress + ${seconds}::float8,
      next_slot_at = GREATEST(clock_timestamp(), LEAST(next_slot_at, GREATEST(resumes_at, clock_timestamp() + make_interval(secs => ${furthest}::float8))))
        + make_interval(secs => ${seconds}::float8)
    WHERE environment = ${environment} AND version = ${version}
    RETURNING (extract(epoch FROM next_slot_at) * 1000)::float8 - ${seconds * 1_000}::float8 AS "startsAt",
      (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now, progress`;
  return row;
}

/** How far ahead the schedule is leased while requests flow: two leases of SlotSchedule, and what it takes to ask for them. */
export const LEASED_AHEAD_SECONDS = 0.4;

/**
 * Stores what a refusal taught. Returns false if the version has changed. Slots that were leased before are void, but other workers
 * use theirs until they read the change: the next slot comes after these.
 */
export async function changeBudget(
  db: Database,
  known: Pick<BudgetRow, 'version' | 'rate' | 'fallback' | 'seeking' | 'progress'> & { environment: Environment; pause: number },
): Promise<boolean> {
  const changed = await db.prisma.$executeRaw`
    UPDATE muster.request_budgets SET version = version + 1, rate = ${known.rate}::float8, fallback = ${known.fallback}::float8,
      seeking = ${known.seeking}, progress = ${known.progress}::float8, changed_at = clock_timestamp(),
      resumes_at = clock_timestamp() + make_interval(secs => ${known.pause}::float8),
      next_slot_at = GREATEST(clock_timestamp() + make_interval(secs => ${known.pause}::float8),
        LEAST(next_slot_at, clock_timestamp() + make_interval(secs => ${LEASED_AHEAD_SECONDS}::float8)))
    WHERE environment = ${known.environment} AND version = ${known.version}`;
  return changed > 0;
}

/** Pauses all workers for this many seconds: the known limit stays. A longer pause stays too. */
export async function pauseBudget(
  db: Database,
  { environment, pause }: { environment: Environment; pause: number },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.request_budgets SET version = version + 1, changed_at = clock_timestamp(),
      resumes_at = clock_timestamp() + make_interval(secs => ${pause}::float8),
      next_slot_at = clock_timestamp() + make_interval(secs => ${pause}::float8)
    WHERE environment = ${environment} AND resumes_at < clock_timestamp() + make_interval(secs => ${pause}::float8)`;
}

/** Stores the limit that the service's headers announce. */
export async function announceLimit(
  db: Database,
  { environment, announced }: { environment: Environment; announced: number },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.request_budgets SET version = version + 1, announced = ${announced}::float8
    WHERE environment = ${environment} AND announced IS DISTINCT FROM ${announced}::float8`;
}

/** Stores how many requests at once go well, for the next start of a process. */
export async function rememberAtOnce(
  db: Database,
  { environment, atOnce }: { environment: Environment; atOnce: number },
): Promise<void> {
  await db.prisma.$executeRaw`UPDATE muster.request_budgets SET at_once = ${atOnce} WHERE environment = ${environment}`;
}

/** Locks the environment's budget until the transaction ends: one worker at a time divides the shares. */
export async function lockBudget(tx: Transaction, { environment }: { environment: Environment }): Promise<void> {
  await tx.$executeRaw`SELECT 1 FROM muster.request_budgets WHERE environment = ${environment} FOR UPDATE`;
}

/** The requests that all workers together send to an environment's API. */
export interface BudgetUse extends Pick<RequestBudget, 'rate' | 'announced'> {
  readonly environment: Environment;
  /** Requests at once of all workers, each by its own limit; null while no worker is running. */
  readonly held: number | null;
  readonly waiting: number;
  readonly used: number;
  readonly refused: number;
}

export function readBudgetUse(db: Database): Promise<BudgetUse[]> {
  return db.prisma.$queryRaw`
    SELECT b.environment, b.rate, b.announced,
      sum(s.held) FILTER (WHERE s.seen_at > now() - interval '10 seconds')::int AS held,
      COALESCE(sum(s.waiting) FILTER (WHERE s.seen_at > now() - interval '10 seconds'), 0)::int AS waiting,
      COALESCE(sum(s.used), 0)::int AS used, COALESCE(sum(s.refused), 0)::int AS refused
    FROM muster.request_budgets b
    LEFT JOIN muster.request_shares s ON s.environment = b.environment AND s.seen_at > now() - interval '1 minute'
    GROUP BY b.environment ORDER BY b.environment`;
}
