// muster.second_readings: the newest second reading of each list, and muster.second_reading_records, what one that is under way has received (its
// notes; src/mirror/verification-read.ts makes them). A second reading has a row of muster.walks, as a walk has, and writes it here: begun, counted
// and ended under the claim of its run. It locks no list, and nothing that a walk locks but its own run and its own row.
import type { CompanyKey, Environment } from '../../core/company.js';
import { inTurns } from '../../core/turns.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { runStep } from '../connection/step.js';
import type { Transaction } from '../connection/transaction.js';
import { textArray, textArrayInPortions } from '../statements/array-literals.js';
import { inPieces } from '../statements/in-pieces.js';
import { isOf, rowsOf } from './connections.js';
import type { ListKey } from './lists.js';
import { lockedRun, type RunClaim } from './runs.js';

/** What a second reading found, as it stands in muster.walks and as the API shows it. */
export interface VerifyResult {
  readonly missing: number;
  readonly extra: number;
  readonly different: number;
  readonly changed_since: number;
  readonly held: number;
  readonly compared: number;
  readonly as_of: string | null;
  readonly sample: readonly { readonly id: string; readonly kind: string; readonly members?: readonly string[] }[];
  /** What speaks against the end at which the last verified walk took the list to be read. */
  readonly contradiction?: string;
}

export interface ReadingClaim {
  readonly walkId: string;
  readonly run: RunClaim;
}

/** Begins the reading, from the beginning of its list whatever one before has noted. Returns whether the run is ours still. */
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
 * The parts of a statement that counts what was read so far, under the claim of the run: `reading` has a row only while the run is ours and the reading
 * is under way. It locks that row, so that whatever the statement writes by it is seen by everyone who ends or restarts the reading (eraseFromReadings).
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

/** How many of these keys the pass has received. */
export async function countReceived(
  db: Pick<Database, 'steps'>,
  { walkId, pass, ids }: { walkId: string; pass: number; ids: readonly string[] },
): Promise<number> {
  const [row] = await runStep<{ count: number }>(db, {
    text: `SELECT count(*)::int AS count FROM unnest($3::text[]) AS asked(id)
      JOIN muster.second_reading_records r ON r.walk_id = $1::uuid AND r.id = asked.id AND r.pass = $2::int`,
    values: [walkId, pass, await inTurns(textArrayInPortions(ids))],
  });
  return row!.count;
}

/** Ends the reading with what it found, and forgets its notes. Returns false where the run is not ours any more, or the reading was restarted. */
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

/** Forgets the notes of readings whose run is over: one that failed for good, or was cancelled. */
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

/** Takes what readings have noted of a company's records out of the database: notes, and ids in samples. Counts stay. */
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
 * Takes records of a list out of the samples of its readings, those with the prefix too, and restarts the readings that are under way. Those may know the
 * records by other ids, and would write them again by the marks that they began with: so all of their notes go, and their workers begin anew.
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
  // Before the notes are deleted: this waits for the statement that is writing some.
  await tx.$executeRaw`UPDATE muster.walks SET status = 'queued' WHERE ${isOfList} AND status = 'running'`;
  await tx.$executeRaw`
    DELETE FROM muster.second_reading_records WHERE walk_id IN (SELECT w.id FROM muster.walks w WHERE ${isOfList} AND w.status <> 'succeeded')`;
}

/**
 * Companies whose turn it is: the active ones that had none for longest, as many as the share says, without those of this night. Only those
 * come whose sync of this night has ended; whoever must wait for it keeps its turn.
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
      SELECT c.environment, c.company_id FROM muster.connections c
      WHERE c.environment = ${environment} AND c.status = 'active'
        AND (c.verify_turn_at IS NULL OR c.verify_turn_at < ${nightBeganAt}::timestamptz)
      ORDER BY c.verify_turn_at NULLS FIRST, c.company_id LIMIT (SELECT GREATEST(0, share.left) FROM share)
    )
    SELECT t.environment, t.company_id AS "companyId" FROM turn t CROSS JOIN LATERAL (
      SELECT r.finished_at, r.created_at FROM muster.runs r
      WHERE r.environment = t.environment AND r.company_id = t.company_id AND r.kind = 'sync' ORDER BY r.seq DESC LIMIT 1) last
    WHERE last.created_at >= ${nightBeganAt}::timestamptz AND last.finished_at IS NOT NULL`;
}

/** Notes that these companies had their turn. */
export async function recordVerifyTurns(
  db: Pick<Database, 'prisma'>,
  { companies }: { companies: readonly CompanyKey[] },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.connections c SET verify_turn_at = now() FROM ${rowsOf(companies)}
    WHERE c.environment = asked.environment AND c.company_id = asked.company_id`;
}
