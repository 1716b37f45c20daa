import { inTurns } from '../core/turns.js';
import type { Database } from '../db/connection/database.js';
import { runStep, wasRolledBack } from '../db/connection/step.js';
import { type NamedStatement, named } from '../db/statements/named-parameters.js';
import { APPEND_PAGE } from '../db/tables/feed-append.js';
import { fenced, type ListKey } from '../db/tables/lists.js';
import { COUNT_PAGES, LOCK_WALK, RECORD_PAGES } from '../db/tables/page-commit.js';
import { assignments, INSERTED } from './mirror-columns.js';
import { mirrorTable } from './mirror-table.js';
import { type PageParameter, pageParameters, type WalkWrite } from './page-parameters.js';
import type { PageToWrite } from './page-values.js';

/** Rows that a commit has written; `updated` counts those that had been deleted, too. */
export interface WrittenRows {
  readonly inserted: number;
  readonly updated: number;
}

/**
 * Writes pages that follow each other: the rows that are new, differ or had been deleted; their change feed rows; the ledger rows;
 * the walk's checkpoint and counts. One step: all of it or nothing. Throws `fenced` when another worker has taken the list, or the walk has
 * ended, and an error that is worth another attempt when a row that differs was changed by hand at the same moment. Of two
 * records with one id the last one wins.
 *
 * Unchanged rows are not even locked: the difference is taken first. Idioms of docs/internals/planner.md: each record is a look-up, its text is
 * worked out once, rows that differ are updated by their place. Records that are known to be new are not looked up; where another writer has
 * inserted one of them, the statement fails with SQLSTATE 23505. New rows need no ON CONFLICT, which would cost a quarter more: only the
 * worker that holds the list inserts.
 *
 * Data is compared by its bytes (`record_image_ne`): as values, 1.5 and 1.50 are equal.
 */
export async function writePages(
  db: Pick<Database, 'steps'>,
  write: WalkWrite,
  pages: readonly PageToWrite[],
): Promise<WrittenRows> {
  const { list } = write;
  const statement = pageStatement(mirrorTable(list.resource));
  const parameters = await inTurns(pageParameters(write, pages));
  try {
    const [written] = await runStep<WrittenRows>(db, statement(parameters));
    if (!written) throw fenced(list, 'another worker has taken it over, or the walk has ended or stands elsewhere');
    return written;
  } catch (error) {
    throw wasRolledBack(error) ? changedByHand(list) : error;
  }
}

function changedByHand({ resource }: ListKey): Error {
  return new Error(
    `Not every row of ${resource} that differs could be updated: another session, or a trigger, changes them at the same time.`,
  );
}

const STATEMENTS = new Map<string, NamedStatement<PageParameter>>();

/** One statement a table, made once: connections keep its plan by its text. */
function pageStatement(table: string): NamedStatement<PageParameter> {
  const statement = STATEMENTS.get(table) ?? named<PageParameter>(pageText(table));
  STATEMENTS.set(table, statement);
  return statement;
}

const pageText = (table: string) => `
WITH ${LOCK_WALK}, incoming AS (
  SELECT i.id, convert_from(substr(:texts::bytea, i.start, i.length), 'UTF8')::jsonb AS data, i.start, i.length, i.n
  FROM walk CROSS JOIN unnest(:ids::text[], :starts::int[], :lengths::int[]) WITH ORDINALITY AS i(id, start, length, n)
  OFFSET 0
), difference AS (
  SELECT s.id, s.data, s.start, s.length, s.n, t.place,
         CASE WHEN t.id IS NULL THEN 'insert' WHEN t.deleted_at IS NOT NULL THEN 'restore' ELSE 'update' END AS op
  FROM incoming s
  LEFT JOIN LATERAL (
    SELECT t.id, t.data, t.deleted_at, t.ctid AS place FROM ${table} t
    WHERE t.environment = :environment AND t.company_id = :companyId::uuid AND t.id = s.id AND s.n <= :lookUps OFFSET 0
  ) t ON true
  WHERE t.id IS NULL OR t.deleted_at IS NOT NULL OR record_image_ne(ROW(t.data), ROW(s.data))
), inserted AS (
  INSERT INTO ${table} (environment, company_id, id, data, ${INSERTED.names})
  SELECT :environment, :companyId::uuid, id, data, ${INSERTED.values} FROM difference WHERE op = 'insert'
), rewritten AS (
  UPDATE ${table} t SET data = d.data, ${assignments('rewrite')}
  FROM difference d WHERE t.ctid = d.place AND d.op <> 'insert'
  RETURNING 1
), counted AS (
  SELECT count(*)::int AS size, (count(*) FILTER (WHERE op = 'insert'))::int AS inserted,
         (count(*) FILTER (WHERE op <> 'insert'))::int AS updated, (count(*) FILTER (WHERE op <> 'update'))::int AS risen
  FROM difference
), ${APPEND_PAGE}, ${RECORD_PAGES}
${COUNT_PAGES}`;
