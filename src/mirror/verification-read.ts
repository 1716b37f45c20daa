// A verification read compares the records that it received with the mirror's rows, and with the records that the last verified walk received. It reads the
// mirror, the ledger and the feed, and writes nothing but its own notes (muster.second_reading_records).
//
//   received | mirror                   | verdict
//   ---------+--------------------------+-----------------------------------------------------------------------------------------
//   yes      | the same                 | none
//   yes      | no row                   | `missing` if the last verified walk received the record; else it is new: `since`
//   yes      | another text             | `different` if the walk received this very text, or if the feed wrote another one than the
//            |                          | mirror has; else the record was changed upstream since: `since`
//   no       | a row the walk received  | it was deleted upstream, or moved past the reader: `since`. `different` by the feed, as above
//   any      | a row the walk had not   | `extra`; `held` where a hold keeps it, or its grant never received it
//
// The age of the mirror is never taken for a fault of it, whenever records change, and even while the list is walked: the walk's ledger, its writes and its
// proof are read in one snapshot. A row that a later walk, unproved so far, has written is `since`, too.
import type { Database } from '../db/connection/database.js';
import { runStep } from '../db/connection/step.js';
import type { ListKey } from '../db/tables/lists.js';
import { countedReading, noteRecords, type ReadingClaim } from '../db/tables/second-readings.js';
import { Prisma } from '../generated/prisma/client.js';
import { mirrorTable, tableOf } from './mirror-table.js';

/** A record as it was received, and the hash of its text as the ledger keeps it; undefined where the ledger keeps none. */
export interface RecordToCompare {
  readonly id: string;
  readonly text: string | null;
  readonly rowHash: Buffer | undefined;
}

/** A page, or a portion of it, and the counts of the reading with the whole page. */
export interface PageToCompare {
  readonly pass: number;
  readonly pages: number;
  readonly received: number;
  readonly records: readonly RecordToCompare[];
}

export interface VerificationReadKey {
  readonly list: ListKey;
  readonly walkId: string;
}

/**
 * Notes these records, with the texts of records that differ from the mirror, and counts them. Of two with one id the last one counts. Returns false, and notes
 * nothing, where the run is not ours any more, or the reading was restarted.
 */
export async function compareRecords(
  db: Pick<Database, 'steps'>,
  { list, ...claim }: ReadingClaim & { readonly list: ListKey },
  { records, ...counts }: PageToCompare,
): Promise<boolean> {
  const distinct = [...new Map(records.map((record) => [record.id, record])).values()];
  const rows = await runStep(
    db,
    Prisma.sql`
    WITH ${countedReading({ ...claim, ...counts })}, ${noteRecords(Prisma.sql`
      SELECT reading.id, ${counts.pass}::int, r.id, r.row_hash,
        CASE WHEN m.id IS NULL OR record_image_ne(ROW(m.data), ROW(r.text::jsonb)) THEN r.text END
      FROM reading CROSS JOIN unnest(${distinct.map(({ id }) => id)}::text[], ${distinct.map(({ rowHash }) => rowHash ?? null)}::bytea[],
        ${distinct.map(({ text }) => text)}::text[]) AS r(id, row_hash, text)
      LEFT JOIN LATERAL (
        SELECT t.id, t.data FROM ${tableOf(list)} t
        WHERE t.environment = ${list.environment} AND t.company_id = ${list.companyId}::uuid AND t.id = r.id AND t.deleted_at IS NULL OFFSET 0
      ) m ON true`)}
    SELECT id FROM reading`,
  );
  return rows.length > 0;
}

/** A fault of a record's row, without any of its values. */
export interface Fault {
  readonly id: string;
  readonly kind: 'missing' | 'extra' | 'different';
  /** Names of the members that differ. */
  readonly members?: readonly string[];
}

export interface Findings {
  readonly missing: number;
  readonly extra: number;
  readonly different: number;
  /** Records that changed after the walk: no fault of the mirror. */
  readonly changedSince: number;
  /** Rows that a hold keeps. */
  readonly held: number;
  /** Records that were received. */
  readonly received: number;
  /** The proof that was compared with: the start of the last verified walk. Null where there is none, and then no fault either. */
  readonly asOf: Date | null;
  /** At most SAMPLE of each kind. */
  readonly sample: readonly Fault[];
}

const SAMPLE = 10;
const MOST_MEMBERS = 20;

/** Compares the notes with the mirror, in one snapshot. `hashBytes`: bytes of a row hash. */
export async function judgeReading(
  db: Pick<Database, 'steps'>,
  { list, walkId }: VerificationReadKey,
  { hashBytes }: { readonly hashBytes: number },
): Promise<Findings> {
  const [row] = await runStep<Record<string, number> & { asOf: Date | null; sample: Fault[] | null }>(
    db,
    judgement(list, walkId, hashBytes),
  );
  const { asOf, sample, ...counts } = row!;
  return { ...counts, asOf, sample: sample ?? [] } as unknown as Findings;
}

const judgement = ({ environment, companyId, resource }: ListKey, walkId: string, hashBytes: number) => Prisma.sql`
WITH walk AS (
  SELECT w.id, w.pass, w.finished_at, w.epoch = l.epoch AS is_last, l.last_verified_at
  FROM muster.lists l JOIN muster.walks w ON w.id = l.verified_walk_id
  WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}
), ledger AS MATERIALIZED (
  SELECT DISTINCT ON (u.id) u.id COLLATE "C" AS id, s.id AS snapshot_id, u.n
  FROM walk JOIN muster.walk_pages p ON p.walk_id = walk.id AND p.pass = walk.pass
  JOIN muster.page_snapshots s ON s.id = p.snapshot_id JOIN muster.page_keys k ON k.id = s.keys_id
  CROSS JOIN LATERAL unnest(k.ids) WITH ORDINALITY AS u(id, n)
  ORDER BY u.id, p.page DESC, u.n DESC
), unread AS (
  SELECT id FROM ${Prisma.raw(mirrorTable(resource))} WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND deleted_at IS NULL
  EXCEPT SELECT id FROM muster.second_reading_records WHERE walk_id = ${walkId}::uuid
), suspect AS MATERIALIZED (
  SELECT r.id, r.text::jsonb AS data, r.row_hash, TRUE AS is_received FROM muster.second_reading_records r
  WHERE r.walk_id = ${walkId}::uuid AND r.text IS NOT NULL
  UNION ALL SELECT id, NULL, NULL, FALSE FROM unread
), pair AS MATERIALIZED (
  SELECT s.id, s.data, s.row_hash, s.is_received, m.data AS mirrored, m.first_seen_at, m.changed_at, m.id IS NOT NULL AS is_living
  FROM suspect s LEFT JOIN LATERAL (
    SELECT t.* FROM ${Prisma.raw(mirrorTable(resource))} t WHERE t.environment = ${environment} AND t.company_id = ${companyId}::uuid AND t.id = s.id AND t.deleted_at IS NULL OFFSET 0
  ) m ON true
  WHERE m.id IS NULL OR NOT s.is_received OR record_image_ne(ROW(m.data), ROW(s.data))
), batch AS MATERIALIZED (
  SELECT id, changed_at FROM muster.change_batches WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}
), written AS (
  SELECT DISTINCT ON (p.id) p.id, record_image_ne(ROW(p.mirrored), ROW(c.data)) AS is_another
  FROM pair p JOIN batch ON batch.changed_at = p.changed_at JOIN muster.change_batches b ON b.id = batch.id
  CROSS JOIN LATERAL (
    SELECT r.position, r.data FROM muster.changes r WHERE r.batch_id = b.id AND r.record_id = p.id
    UNION ALL
    SELECT w.n::int, convert_from(substr(b.texts, w.start - b.texts_from + 1, w.length), 'UTF8')::jsonb
    FROM unnest(b.ids, b.starts, b.lengths) WITH ORDINALITY AS w(id, start, length, n) WHERE w.id = p.id AND b.texts IS NOT NULL
  ) c
  WHERE p.is_living AND c.data IS NOT NULL
  ORDER BY p.id, b.id DESC, c.position DESC
), judged AS (
  SELECT p.*, CASE
    WHEN NOT p.is_living THEN CASE WHEN l.id IS NOT NULL THEN 'missing' ELSE 'since' END
    WHEN walk.id IS NULL OR (NOT walk.is_last AND p.changed_at > walk.finished_at) THEN 'since'
    WHEN l.id IS NULL THEN CASE WHEN EXISTS (
        SELECT FROM muster.holds h
        WHERE h.environment = ${environment} AND h.company_id = ${companyId}::uuid AND h.resource = ${resource} AND h.walk_id = walk.id
          AND h.cause = 'share' AND h.status IN ('open', 'rejected') AND p.first_seen_at <= h.opened_at)
        OR (SELECT TRUE FROM muster.held_rows r
          WHERE r.environment = ${environment} AND r.company_id = ${companyId}::uuid AND r.resource = ${resource} AND r.id = p.id LIMIT 1)
      THEN 'held' ELSE 'extra' END
    WHEN p.row_hash = (SELECT NULLIF(substr(s.row_hashes, ((l.n - 1) * ${hashBytes}::int)::int + 1, ${hashBytes}::int), '')
      FROM muster.page_snapshots s WHERE s.id = l.snapshot_id) THEN 'different'
    WHEN w.is_another THEN 'different'
    ELSE 'since' END AS verdict
  FROM pair p LEFT JOIN walk ON true LEFT JOIN ledger l ON l.id = p.id LEFT JOIN written w ON w.id = p.id
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY verdict ORDER BY id) AS rank FROM judged WHERE verdict IN ('missing', 'extra', 'different')
)
SELECT (count(*) FILTER (WHERE verdict = 'missing'))::int AS missing, (count(*) FILTER (WHERE verdict = 'extra'))::int AS extra,
  (count(*) FILTER (WHERE verdict = 'different'))::int AS different, (count(*) FILTER (WHERE verdict = 'since'))::int AS "changedSince",
  (count(*) FILTER (WHERE verdict = 'held'))::int AS held,
  (SELECT count(*)::int FROM muster.second_reading_records WHERE walk_id = ${walkId}::uuid) AS received,
  (SELECT last_verified_at FROM walk) AS "asOf",
  (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('id', f.id, 'kind', f.verdict, 'members', CASE WHEN f.verdict = 'different' THEN (
      SELECT jsonb_agg(name ORDER BY name) FROM (
        SELECT name FROM (
          SELECT jsonb_object_keys(CASE WHEN jsonb_typeof(f.data) = 'object' THEN f.data ELSE '{}' END)
          UNION SELECT jsonb_object_keys(CASE WHEN jsonb_typeof(f.mirrored) = 'object' THEN f.mirrored ELSE '{}' END)) n(name)
        WHERE f.is_received AND record_image_ne(ROW(f.data -> name), ROW(f.mirrored -> name)) ORDER BY name LIMIT ${MOST_MEMBERS}::int) d
      ) END)) ORDER BY f.verdict, f.id) FROM ranked f WHERE f.rank <= ${SAMPLE}::int) AS sample
FROM judged`;
