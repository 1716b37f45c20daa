import type { Environment } from '../core/company.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { areAllProved } from '../db/tables/lists.js';
import { readArrays } from '../db/tables/schema-arrays.js';
import type { ColumnRow, RecordKey, TwinAnswer } from '../db/tables/schema-columns.js';
import * as log from '../db/tables/schema-columns.js';
import { Prisma } from '../generated/prisma/client.js';
import { mirrorTable } from '../mirror/mirror-table.js';
import { recordSchemaChange } from '../notifications/events.js';
import { ColumnLog } from './column-log.js';
import { areEnough, kindsWith, MANY, type TwinCandidate, twinCandidates } from './column-types.js';
import { elementsView, livingRecords } from './record-views.js';
import { jsonAt } from './view-text.js';

// A column whose type was inferred too early, or whose values have another kind now, gets a twin: a further column with the type of all living values.
//
//   counts suggest it -> due     ColumnLog: enough values of one kind were counted; the log remembers that
//   due -> twin                  the mirror has no living value of another kind, and enough of this one
//   due -> answered              it has; the question rests until a value of the kind is counted, and until twice as many are if a record that it named still speaks against it
//   due -> waits                 the values are enough once all lists are proved to have no others

/**
 * Asks the mirror about one column for which a twin is due, and adds the twin where all living values fit it. Returns whether there was such a
 * column; false while another process has the log. The question ends at the first value that does not fit.
 */
export function addDueTwin(db: Database): Promise<boolean> {
  return inTransaction(
    db,
    async (tx) => {
      if ((await log.lockSchemaLog(tx)) === undefined) return false;
      const row = await log.findTwinDue(tx);
      if (!row) return false;
      const { resource, view, path, twinDue } = row;
      const keys = (await log.readKeys(tx, [resource])).filter((key) => key.view === view);
      const columns = new ColumnLog({ resource, view, arrays: [] }, keys);
      const candidate = twinCandidates(row).find(({ kind }) => kind === twinDue);
      const answer = candidate ? await ask(tx, row, candidate) : { count: 0 };
      const isTwin = answer === undefined && columns.hasRoomForTwin;
      if (isTwin) columns.addTwin(path, candidate!.type);
      else columns.answerTwin(path, twinDue!, answer ?? candidate!);
      await log.writeKeys(tx, columns.changed);
      const environment = row.environment as Environment;
      const change = { environment, resource, position: columns.lastPosition, mismatching: 0 };
      await recordSchemaChange(tx, { ...change, added: isTwin ? 1 : 0 });
      return true;
    },
    { timeoutMs: WHOLE_LIST_MS },
  );
}

/** Why there is no twin; undefined: every living value is of the kind, and there are enough. */
async function ask(tx: Transaction, row: ColumnRow, { kind, count }: TwinCandidate): Promise<TwinAnswer | undefined> {
  const { resource, view, path } = row;
  const last = row.twinAnswers[kind];
  const [{ there }] = await tx.$queryRaw<[{ there: boolean }]>`
    SELECT to_regclass(${mirrorTable(resource)}) IS NOT NULL AS there, set_config('enable_seqscan', 'on', true)`;
  if (!there) return { count };
  const array = (await readArrays(tx, [resource])).find((each) => each.view === view);
  const { from, data } = array ? elementsView(array) : livingRecords(resource);
  const living = Prisma.raw(`FROM ${from}`);
  const kindOf = Prisma.raw(`muster.kind_of(${jsonAt(path, data)})`);
  const misfits = Prisma.sql`${living} AND ${kindOf} <> ALL (${kindsWith(kind)}::text[])`;
  if (last?.misfit && count < 2 * last.count) {
    const { environment, companyId, id } = last.misfit;
    const rows = await tx.$queryRaw<unknown[]>`
      SELECT 1 ${misfits} AND t.environment = ${environment} AND t.company_id = ${companyId}::uuid AND t.id = ${id}`;
    if (rows.length > 0) return last;
  }
  const [misfit] = await tx.$queryRaw<RecordKey[]>`SELECT t.environment, t.company_id AS "companyId", t.id ${misfits} LIMIT 1`;
  if (misfit) return { count, misfit };
  const [{ values }] = await tx.$queryRaw<[{ values: number }]>`
    SELECT count(*)::int AS values FROM (SELECT ${living} AND ${kindOf} = ${kind} LIMIT ${MANY}::int) v`;
  if (areEnough(values, await areAllProved(tx, { resource }))) return undefined;
  return areEnough(values, true) ? { count, waits: true } : { count };
}
