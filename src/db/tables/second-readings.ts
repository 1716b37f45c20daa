// muster.second_readings: the newest verification of each list, and muster.second_reading_records, the records that a running one has received (its
// notes; src/mirror/verification-read.ts makes them). A verification has a row of muster.walks, as a walk has: it is begun, counted
// and ended here under the claim of its run. It locks no list, and of what a walk locks only its own run and its own row.
import type { CompanyKey, Environment } from '../../core/company.js';
import { inTurns } from '../../core/turns.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { runStep } from '../connection/step.js';
import type { Transaction } from '../connection/transaction.js';
import { textArray, textArrayInPortions } from '../statements/array-literals.js';
import { inPieces } from '../statements/in-pieces.js';
import { isOf, rowsOf } from './connections.js';
import { ofLastSync } from './last-syncs.js';
import type { ListKey } from './lists.js';
import { lockedRun, type RunClaim } from './runs.js';

/** The findings of a verification, as muster.walks stores and the API shows it. */
export interface VerifyResult {
  readonly missing: number;
  readonly extra: number;
  readonly different: number;
  readonly changed_since: number;
  readonly held: number;
  readonly compared: number;
  readonly as_of: string | null;
  readonly sample: readonly { readonly id: string; readonly kind: string; readonly members?: readonly string[] }[];
  /** Evidence against the end at which the last verified walk stopped reading. */
  readonly contradiction?: string;
}

export interface ReadingClaim {
  readonly walkId: string;
  readonly run: RunClaim;
}

/** Begins the verification at the start of its list, whatever an earlier one has noted. Returns whether the run is still ours. */
export async function beginReading(db: Pick<Database, 'steps'>, { walkId, run }: ReadingClaim): Promise<boolean> {
  const rows = await runStep(
    db,
    Prisma.sql`
    WITH run AS (${lockedRun(run)}), forgotten AS (
      DELETE FROM muster.second_reading_records r USING run WHERE r.walk_id = ${walkId}::uuid
    )
    UPDATE muster.walks w SET status = 'running', started_at = COALESCE(w.started_at, now()), pass_started_at = now(), pass = 1, pages = 0,
      received = 0, error = NULL, service_says = NULL
    FROM run WHERE w.id = ${walkId}::uuid AND w.status <> 'succeeded' RETURNING w.id`,
  );
  return rows.length > 0;
}

/**
 * SQL: counts what was read so far, under the claim of the run: `reading` has a row only while the run is ours and the verification
 * is running. It locks that row, so that eraseFromReadings, or whatever else ends or restarts the verification, sees what the statement writes.
 */
export function countedReading({
  walkId,
  run,
  pass,
  pages,
  received,
}: ReadingClaim & { pass: number; pages: number; received: number }): Prisma.Sql {
  return Prisma.sql`run AS (${lockedRun(run)}), reading AS (
      UPDATE muster.walks w SET pass = ${pass}::int, pages = ${pages}::int, received = ${received}::int
      FROM run WHERE w.id = ${walkId}::uuid AND w.status = 'running' RETURNING w.id
    )`;
}

/** The part `noted` of a statement: keeps the rows of `compared`, a query of walk_id, pass, id, row_hash and text. Of two with one id the later counts. */
export function noteRecords(compared: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`noted AS (
      INSERT INTO muster.second_reading_records (walk_id, pass, id, row_hash, text) ${compared}
      ON CONFLICT (walk_id, id) DO UPDATE SET pass = EXCLUDED.pass, row_hash = EXCLUDED.row_hash, text = EXCLUDED.text
    )`;
}

/** How many of these keys the pass has received. */
export async function countReceived(
  db: Pick<Database, 'steps'>,
  { walkId, pass, ids }: { walkId: string; pass: number; ids: readonly string[] },
): Promise<number> {
  const asked = await inTurns(textArrayInPortions(ids));
  const [row] = await runStep<{ count: number }>(
    db,
    Prisma.sql`
    SELECT count(*)::int AS count FROM unnest(${asked}::text[]) AS asked(id)
    JOIN muster.second_reading_records r ON r.walk_id = ${walkId}::uuid AND r.id = asked.id AND r.pass = ${pass}::int`,
  );
  return row!.count;
}

/** Ends the verification with its findings, and deletes its notes. Returns false if the run is not ours any more, or the verification was restarted. */
export async function endReading(
  db: Pick<Database, 'steps'>,
  { walkId, run, list, result }: ReadingClaim & { list: ListKey; result: VerifyResult },
): Promise<boolean> {
  const contradicted = result.contradiction !== undefined && result.as_of !== null ? 1 : 0;
  const faults = result.missing + result.extra + result.different + contradicted;
  const rows = await runStep(
    db,
    Prisma.sql`
    WITH run AS (${lockedRun(run)}), ended AS (
      UPDATE muster.walks w SET status = 'succeeded', finished_at = now(), received = ${result.compared}::int,
        verify = ${JSON.stringify(result)}::jsonb
      FROM run WHERE w.id = ${walkId}::uuid AND w.status = 'running' RETURNING w.id, w.run_id
    ), forgotten AS (
      DELETE FROM muster.second_reading_records r USING ended WHERE r.walk_id = ended.id
    ), noted AS (
      INSERT INTO muster.second_readings (environment, company_id, resource, run_id, faults, read_at)
      SELECT c.environment, c.company_id, ${list.resource}, ended.run_id, ${faults}::int, now() FROM ended JOIN muster.connections c
        ON c.environment = ${list.environment} AND c.company_id = ${list.companyId}::uuid
      ON CONFLICT (environment, company_id, resource) DO UPDATE SET run_id = EXCLUDED.run_id, faults = EXCLUDED.faults, read_at = EXCLUDED.read_at
    )
    SELECT id FROM ended`,
  );
  return rows.length > 0;
}

/** Deletes the notes of verifications whose run is over: failed or cancelled. */
export async function removeOldNotes(db: Pick<Database, 'steps'>): Promise<void> {
  await runStep(
    db,
    Prisma.sql`
    DELETE FROM muster.second_reading_records r WHERE r.walk_id IN (
      SELECT n.walk_id FROM (SELECT DISTINCT walk_id FROM muster.second_reading_records) n
      JOIN muster.walks w ON w.id = n.walk_id JOIN muster.runs run ON run.id = w.run_id
      WHERE run.status NOT IN ('queued', 'running'))`,
  );
}

/** Deletes what verifications have noted of a company's records: notes, and ids in samples. Counts stay. */
export async function eraseReadingsOf(tx: Transaction, company: CompanyKey): Promise<void> {
  const walks = await tx.$queryRaw<{ id: string }[]>`
    SELECT id FROM muster.walks WHERE ${isOf(company)} AND kind = 'verify'
      AND EXISTS (SELECT FROM muster.second_reading_records r WHERE r.walk_id = walks.id)`;
  for (const { id: walkId } of walks) {
    const notes = Prisma.sql`SELECT id FROM muster.second_reading_records WHERE walk_id = ${walkId}::uuid ORDER BY id`;
    for await (const rows of inPieces<{ id: string }>(tx, notes)) {
      const ids = textArray(rows.map(({ id }) => id));
      await tx.$executeRaw`DELETE FROM muster.second_reading_records WHERE walk_id = ${walkId}::uuid AND id = ANY(${ids}::text[])`;
    }
  }
  await tx.$executeRaw`
    UPDATE muster.walks SET verify = jsonb_set(verify, '{sample}', '[]') WHERE ${isOf(company)} AND kind = 'verify' AND verify IS NOT NULL`;
}

/**
 * Removes records of a list, and records with the prefix, from the samples of its verifications, and restarts the running ones. A running one may know the
 * records by other ids, and would store them again by the suppressions that it started with: so all of its notes are deleted, and its worker starts again.
 */
export async function eraseFromReadings(
  tx: Transaction,
  list: ListKey,
  { ids, prefix }: { readonly ids: readonly string[]; readonly prefix: string | undefined },
): Promise<void> {
  const isOfList = Prisma.sql`${isOf(list)} AND resource = ${list.resource} AND kind = 'verify'`;
  await tx.$executeRaw`
    UPDATE muster.walks SET verify = jsonb_set(verify, '{sample}', COALESCE(
      (SELECT jsonb_agg(f) FROM jsonb_array_elements(verify -> 'sample') f
       WHERE f ->> 'id' <> ALL(${ids}::text[]) AND NOT starts_with(f ->> 'id', ${prefix ?? null}::text) IS TRUE), '[]'))
    WHERE ${isOfList} AND verify IS NOT NULL`;
  // This comes before the notes are deleted: it waits for a statement that is writing some.
  await tx.$executeRaw`UPDATE muster.walks SET status = 'queued' WHERE ${isOfList} AND status = 'running'`;
  await tx.$executeRaw`
    DELETE FROM muster.second_reading_records WHERE walk_id IN (SELECT w.id FROM muster.walks w WHERE ${isOfList} AND w.status <> 'succeeded')`;
}

/**
 * Companies whose turn it is: the active ones that waited longest, as many as the share says, without companies that had theirs this night. The
 * company's sync of this night must have ended; a company that waits for it keeps its turn. A run by the schedules of its lists is not that sync.
 */
export function findVerifyTurns(
  db: Pick<Database, 'prisma'>,
  { environment, share, nightBeganAt }: { environment: Environment; share: number; nightBeganAt: Date },
): Promise<CompanyKey[]> {
  return db.prisma.$queryRaw`
    WITH share AS (
      SELECT ceil(count(*) * ${share}::numeric)::int - (count(*) FILTER (WHERE verify_turn_at >= ${nightBeganAt}::timestamptz))::int AS left
      FROM muster.connections WHERE environment = ${environment} AND status = 'active'
    ), turn AS (
      SELECT c.environment, c.company_id, c.next_sync_at FROM muster.connections c
      WHERE c.environment = ${environment} AND c.status = 'active'
        AND (c.verify_turn_at IS NULL OR c.verify_turn_at < ${nightBeganAt}::timestamptz)
      ORDER BY c.verify_turn_at NULLS FIRST, c.company_id LIMIT (SELECT GREATEST(0, share.left) FROM share)
    )
    SELECT environment, company_id AS "companyId" FROM turn c
    WHERE ${ofLastSync(Prisma.sql`r.created_at >= ${nightBeganAt}::timestamptz AND r.finished_at IS NOT NULL`)}`;
}

/** Records that these companies had their turn. */
export async function recordVerifyTurns(
  db: Pick<Database, 'prisma'>,
  { companies }: { companies: readonly CompanyKey[] },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.connections c SET verify_turn_at = now() FROM ${rowsOf(companies)}
    WHERE c.environment = asked.environment AND c.company_id = asked.company_id`;
}
