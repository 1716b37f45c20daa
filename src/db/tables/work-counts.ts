// muster.work_counts: what each process has counted of its work since it started, for GET /metrics. A process writes its own row only, so no
// row is written by two, and writes whole counts, so a write that is repeated counts nothing twice. When the process has stopped, or has been
// silent for an hour, its row is added to the row `total` and deleted. Lock order: the row `total`, then rows of processes. Times are the
// database's.
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { inTransaction } from '../connection/transaction.js';

/** A process that has written nothing for so long is gone. One that was only frozen finds its row missing, and begins a new one. */
const SILENT_HOURS = 1;
/** No process has this name: theirs have slashes. */
const TOTAL = 'total';

/** The counts of one process: JSON that only the metrics know (observability/work-metrics.ts). */
export type StoredCounts = Prisma.JsonValue;

interface CountedBy {
  readonly process: string;
  /** JSON. */
  readonly metrics: string;
}

/** Makes the row of a process, or replaces its counts. */
export async function addCounts(db: Pick<Database, 'prisma'>, { process, metrics }: CountedBy): Promise<void> {
  await db.prisma.$executeRaw`
    INSERT INTO muster.work_counts (process, metrics) VALUES (${process}, ${metrics}::jsonb)
    ON CONFLICT (process) DO UPDATE SET metrics = EXCLUDED.metrics, counted_at = now()`;
}

/** Replaces the counts of a process. Returns false if its row is gone: what it had counted is in the total by now. */
export async function replaceCounts(db: Pick<Database, 'prisma'>, { process, metrics }: CountedBy): Promise<boolean> {
  const replaced = await db.prisma.$executeRaw`
    UPDATE muster.work_counts SET metrics = ${metrics}::jsonb, counted_at = now() WHERE process = ${process}`;
  return replaced > 0;
}

/** The counts of every process and of those that are gone. */
export async function readCounts(db: Pick<Database, 'prisma'>): Promise<StoredCounts[]> {
  const rows = await db.prisma.$queryRaw<{ metrics: StoredCounts }[]>`SELECT metrics FROM muster.work_counts`;
  return rows.map(({ metrics }) => metrics);
}

/**
 * Adds the counts of a process that stops, or else of all that are gone, to the total, in one transaction: at no moment are they missing, or there twice.
 * `sum` adds counts up.
 */
export async function foldCounts(
  db: Pick<Database, 'prisma'>,
  { process, sum }: { readonly process?: string; readonly sum: (counts: readonly StoredCounts[]) => Promise<string> },
): Promise<void> {
  const isGone =
    process === undefined
      ? Prisma.sql`counted_at < now() - make_interval(hours => ${SILENT_HOURS}::int)`
      : Prisma.sql`process = ${process}`;
  await inTransaction(db, async (tx) => {
    // The statement that deletes must follow this one: while it waits for the lock, another process may fold the same rows.
    const [total] = await tx.$queryRaw<{ metrics: StoredCounts }[]>`
      INSERT INTO muster.work_counts AS c (process, metrics) VALUES (${TOTAL}, '[]')
      ON CONFLICT (process) DO UPDATE SET counted_at = now() RETURNING metrics`;
    const gone = await tx.$queryRaw<{ metrics: StoredCounts }[]>`
      DELETE FROM muster.work_counts WHERE process <> ${TOTAL} AND ${isGone} RETURNING metrics`;
    if (gone.length === 0) return;
    const metrics = await sum([total!, ...gone].map((row) => row.metrics));
    await tx.$executeRaw`UPDATE muster.work_counts SET metrics = ${metrics}::jsonb WHERE process = ${TOTAL}`;
  });
}
