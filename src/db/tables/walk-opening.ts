// muster.walks: how a walk is opened; walks.ts has everything else about its row. Lock order: connection, list, run, walk.
import { type List, Prisma, type Run, type Walk } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import { runStep } from '../connection/step.js';
import type { EtagTrust } from './etag-trust.js';
import { type BaselineColumns, type BaselineWalk, baselineColumns, readBaselineColumns } from './ledger.js';
import { asJson, type StoredRules } from './list-privacy.js';
import { type ListKey, takeList } from './lists.js';
import { STATUS_OF_ONE } from './runs.js';

/** The input of opening a walk. */
export interface WalkOpening extends Pick<Walk, 'id'> {
  readonly list: ListKey;
  readonly run: Pick<Run, 'id' | 'epoch'>;
  /** The fingerprint of the catalogue entry, and the members that may be the id. */
  readonly fingerprint: string;
  readonly ids: readonly string[];
  /** The privacy rules of the entry: the list must have them. */
  readonly rules: StoredRules;
  /** The walk that proved the parents of a child list; null if none has, or the list has no parents. */
  readonly parentsWalkId: string | null;
  /** An older checkpoint is too old to resume from. */
  readonly checkpointSince: Date;
  readonly startedAt: Date;
  /** Whether it may be based on an earlier walk, unless a person asked for a full sync, in which every record is compared. */
  readonly mayGoByAnother: boolean;
  /** Whether the catalogue calls the list optional. */
  readonly isOptional: boolean;
  /** Whether the list is read for each record of a parent list. */
  readonly isChild: boolean;
  /** Whether resuming counts as a resumption that a person is told of. */
  readonly countsAsResumed: boolean;
}

/** An opened walk, with its list as it was found. */
export interface OpenedWalk
  extends Pick<Walk, 'pass' | 'pages' | 'startedEmpty'>,
    Pick<List, 'idField' | 'unstableSince' | 'records' | 'lastVerifiedAt'> {
  readonly epoch: bigint;
  /** The company's grant, under which the whole walk is received. */
  readonly grantNumber: number;
  /** Whether a person in the list was forgotten. */
  readonly hasSuppressions: boolean;
  /** Whether an earlier walk has read the list to its end. */
  readonly wasRead: boolean;
  /** Whether the newest walk found that the company does not have the list. */
  readonly wasUnavailable: boolean;
  readonly etagTrust: EtagTrust;
  /** The checkpoint to resume from; null = the start. */
  readonly checkpoint: object | null;
  /** Its ledger still has pages from before it began again. */
  readonly hasOldLedger: boolean;
  readonly baseline: BaselineWalk | null;
}

/**
 * Takes the list, and opens the walk from its checkpoint or from the start. One step: connection, list, run and walk are locked in this order,
 * and if one of them is not as it must be, nothing happens. Undefined: the company was removed. Throws an error that `wasRolledBack` recognizes
 * if the run is not ours any more, the walk has ended, the records of the list are kept under another member than any of `ids`, or its
 * rows have other privacy rules.
 *
 * The walk keeps its baseline if no other worker took the list since. From the start, its baseline is the list's last verified walk, if that is reusable,
 * the very last to write to the list, and of the same grant and catalogue entry: then the mirror has every record that it received, with the same text.
 * A pass begins by the database's clock: last_verified_at is compared with other times of the same clock.
 */
export async function openWalk(db: Pick<Database, 'steps'>, opening: WalkOpening): Promise<OpenedWalk | undefined> {
  const { id, list, run, fingerprint, parentsWalkId } = opening;
  const statement = Prisma.sql`
    WITH ${takeList(list, { ...opening, runId: run.id, rules: asJson(opening.rules) })}, run AS (
      SELECT trigger = 'manual' AND mode = 'full' AS compares_all FROM list CROSS JOIN muster.runs
      WHERE runs.id = ${run.id}::uuid AND runs.epoch = ${run.epoch}::bigint AND ${STATUS_OF_ONE} = 'running' FOR SHARE OF runs
    ), stood AS (
      SELECT w.id, w.epoch, w.baseline_walk_id, w.fingerprint IS NOT NULL AS has_ledger, run.compares_all,
        w.checkpoint IS NOT NULL AND w.fingerprint = ${fingerprint}::text AND w.checkpoint_at > ${opening.checkpointSince}::timestamptz
          AND w.grant_number IS NOT DISTINCT FROM connection.grant_number
          AND (${parentsWalkId}::text IS NULL OR w.checkpoint -> 'parent' ->> 'parentsWalkId' = ${parentsWalkId}::text) IS TRUE AS resumes
      FROM list CROSS JOIN connection CROSS JOIN run CROSS JOIN muster.walks w
      WHERE w.id = ${id}::uuid AND w.status <> 'succeeded' AND list.follows_rules AND (list.id_field IS NULL OR list.id_field = ANY(${opening.ids}::text[]))
      FOR UPDATE OF w
    ), baseline AS (
      SELECT ${baselineColumns(list)} FROM list CROSS JOIN connection CROSS JOIN stood JOIN muster.walks b
        ON b.id = CASE WHEN NOT stood.resumes THEN list.verified_walk_id WHEN stood.epoch = list.epoch - 1 THEN stood.baseline_walk_id END
      WHERE b.grant_number = connection.grant_number AND (stood.resumes OR (${opening.mayGoByAnother}::boolean AND NOT stood.compares_all
        AND b.reusable AND b.epoch = list.epoch - 1 AND b.fingerprint = ${fingerprint}::text))
    ), opened AS (
      UPDATE muster.walks w SET status = 'running', epoch = list.epoch, fingerprint = ${fingerprint}::text, baseline_walk_id = baseline_id,
        grant_number = connection.grant_number,
        error = NULL, service_says = NULL, started_at = COALESCE(w.started_at, ${opening.startedAt}::timestamptz),
        resumed = w.resumed OR (stood.resumes AND ${opening.countsAsResumed}::boolean),
        started_empty = stood.resumes AND w.started_empty,
        pass_started_at = CASE WHEN stood.resumes THEN w.pass_started_at ELSE now() END,
        checkpoint = CASE WHEN stood.resumes THEN w.checkpoint END, checkpoint_at = CASE WHEN stood.resumes THEN w.checkpoint_at END,
        pass = CASE WHEN stood.resumes THEN w.pass ELSE 1 END, received = CASE WHEN stood.resumes THEN w.received ELSE 0 END,
        duplicates = CASE WHEN stood.resumes THEN w.duplicates ELSE 0 END, rejected = CASE WHEN stood.resumes THEN w.rejected ELSE 0 END
      FROM list CROSS JOIN connection CROSS JOIN stood LEFT JOIN baseline ON true
      WHERE w.id = stood.id
      RETURNING w.id, w.pass, w.pages, w.started_empty, w.checkpoint, stood.has_ledger AND NOT stood.resumes AS has_old_ledger
    )
    SELECT list.epoch, connection.grant_number AS "grantNumber", list.id_field AS "idField", list.unstable_since AS "unstableSince", list.has_marks AS "hasSuppressions", list.was_read AS "wasRead",
      list.was_unavailable AS "wasUnavailable", list.records, list.last_verified_at AS "lastVerifiedAt",
      list.etag_trust AS "etagTrust", opened.pass, opened.pages,
      opened.started_empty AS "startedEmpty", opened.checkpoint, opened.has_old_ledger AS "hasOldLedger", baseline.*,
      muster.require(opened.id IS NOT NULL)
    FROM list CROSS JOIN connection LEFT JOIN opened ON true LEFT JOIN baseline ON true`;
  const [row] = await runStep<Omit<OpenedWalk, 'baseline'> & BaselineColumns>(db, statement);
  return row && { ...row, baseline: readBaselineColumns(row) };
}
