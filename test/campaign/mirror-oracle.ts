import { isDeepStrictEqual } from 'node:util';
import type { QueryResultRow } from 'pg';
import type { CompanyKey } from '../../src/core/company.js';
import type { Database } from '../../src/db/connection/database.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { type CompanyModel, type ListHistory, type ModelResource, RESOURCES } from './company-model.js';

interface Subject {
  readonly db: Database;
  readonly companyId: string;
  readonly resource: ModelResource;
  readonly history: ListHistory;
}

/** Living rows by id: their data, as PostgreSQL prints it. */
type Living = ReadonlyMap<string, string>;

/**
 * Everything in which the database contradicts what the service held, one line each. While nobody works on the company it must hold
 * at any moment, however its walks were ended:
 *
 * 1. A record that was there since before the list was last verified lives in the mirror, with the text that it had then.
 * 2. What lives there though the service has it no more has joined or left since, or is held back for a person.
 * 3. The verified walk's ledger is of one pass, has every such record, and none that had left before.
 * 4. Once a list's newest walk has succeeded, no page's contents or keys are left that no ledger refers to.
 * 5. The change feed, replayed, gives the mirror, and never changes what is not there.
 * 6. Nothing ends in an internal_error.
 *
 * `isQuiet`: every list was verified after its last change, so all of it is compared with what the service holds now.
 */
export async function findFaults(
  db: Database,
  { companyId }: CompanyKey,
  model: CompanyModel,
  isQuiet = false,
): Promise<string[]> {
  await stampChanges(db);
  const faults = await findInternalErrors(db, companyId);
  for (const resource of RESOURCES) {
    const found = await findListFaults({ db, companyId, resource, history: model.history(resource) }, isQuiet);
    faults.push(...found.map((line) => `${resource}: ${line}`));
  }
  return faults;
}

async function findListFaults(subject: Subject, isQuiet: boolean): Promise<string[]> {
  const living = await livingRecords(subject);
  const [list] = await query<{ records: number; last_verified_at: Date | null; verified_walk_id: string | null }>(
    subject,
    'SELECT records, last_verified_at, verified_walk_id FROM muster.lists WHERE company_id = $1 AND resource = $2',
  );
  const faults = [...(await findFeedFaults(subject, living)), ...(await findOrphans(subject))];
  if ((list?.records ?? 0) !== living.size) faults.push(`${living.size} records, counted as ${list?.records ?? 0}`);
  const verifiedAt = isQuiet ? Infinity : list?.last_verified_at?.getTime();
  if (verifiedAt === undefined) return faults;
  faults.push(...findLost(subject, living, verifiedAt), ...findStale(subject, living, verifiedAt));
  const walkId = list?.verified_walk_id;
  if (!walkId) return [...faults, 'verified by no walk'];
  faults.push(...(await findLedgerFaults(subject, walkId, verifiedAt)));
  if (subject.history.changedAt < verifiedAt && !(await wasHeld(subject, walkId)))
    faults.push(...fault('too many', goneRecords(subject, living)));
  return faults;
}

function findLost({ history }: Subject, living: Living, verifiedAt: number): string[] {
  const lost = history.steadfastSince(verifiedAt).filter((id) => !living.has(id));
  return fault('lost', lost);
}

function findStale({ history }: Subject, living: Living, verifiedAt: number): string[] {
  const stale = [...living.keys()].filter((id) => {
    const { text, textSince = Infinity } = history.present.get(id) ?? {};
    return textSince < verifiedAt && !isDeepStrictEqual(JSON.parse(living.get(id)!), JSON.parse(text!));
  });
  return fault('stale', stale);
}

function goneRecords({ history }: Subject, living: Living): string[] {
  return [...living.keys()].filter((id) => !history.present.has(id));
}

async function findLedgerFaults(subject: Subject, walkId: string, verifiedAt: number): Promise<string[]> {
  const { history } = subject;
  const ledger = await query<{ id: string; isOfPass: boolean }>(
    subject,
    `SELECT DISTINCT unnest(k.ids) AS id, p.pass = w.pass AS "isOfPass"
     FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id
     JOIN muster.page_snapshots c ON c.id = p.snapshot_id JOIN muster.page_keys k ON k.id = c.keys_id
     WHERE w.company_id = $1 AND w.resource = $2 AND w.id = $3`,
    walkId,
  );
  const received = new Set(ledger.map(({ id }) => id));
  const others = ledger.filter(({ isOfPass }) => !isOfPass).map(({ id }) => id);
  const missed = history.steadfastSince(verifiedAt).filter((id) => !received.has(id));
  const gone = [...received].filter((id) => !history.present.has(id) && (history.leftAt.get(id) ?? 0) < verifiedAt);
  return [
    ...fault('in the ledger from another pass', others),
    ...fault('missing in the ledger', missed),
    ...fault('in the ledger though gone before', gone),
  ];
}

/** Whether that walk's deletions waited for a person who has not approved them. */
async function wasHeld(subject: Subject, walkId: string): Promise<boolean> {
  const holds = await query(
    subject,
    `SELECT FROM muster.holds WHERE company_id = $1 AND resource = $2 AND walk_id = $3 AND status <> 'approved'`,
    walkId,
  );
  return holds.length > 0;
}

/** A list whose newest walk is unfinished may keep pages of walks that went before. */
async function findOrphans(subject: Subject): Promise<string[]> {
  const [orphans] = await query<{ contents: string[]; keys: string[] }>(
    subject,
    `SELECT
       ARRAY(SELECT c.id::text FROM muster.page_snapshots c WHERE c.company_id = $1 AND c.resource = $2
         AND NOT EXISTS (SELECT FROM muster.walk_pages p WHERE p.snapshot_id = c.id)) AS contents,
       ARRAY(SELECT k.id::text FROM muster.page_keys k WHERE k.company_id = $1 AND k.resource = $2
         AND NOT EXISTS (SELECT FROM muster.page_snapshots c WHERE c.keys_id = k.id)) AS keys
     FROM muster.lists l JOIN muster.walks w ON w.run_id = l.last_run_id AND w.resource = l.resource AND w.epoch = l.epoch
     WHERE l.company_id = $1 AND l.resource = $2 AND w.status = 'succeeded'`,
  );
  return [...fault('orphans of page_snapshots', orphans?.contents ?? []), ...fault('orphans of page_keys', orphans?.keys ?? [])];
}

async function findFeedFaults(subject: Subject, living: Living): Promise<string[]> {
  const feed = await query<{ id: string; op: 'insert' | 'update' | 'delete' | 'restore'; data: string }>(
    subject,
    'SELECT id, op, data::text AS data FROM mirror.changes WHERE company_id = $1 AND resource = $2 ORDER BY seq',
  );
  const replayed = new Map<string, string>();
  const impossible: string[] = [];
  for (const { id, op, data } of feed) {
    if ((op === 'update' || op === 'delete') !== replayed.has(id)) impossible.push(`${op} of ${id}`);
    if (op === 'delete') replayed.delete(id);
    else replayed.set(id, data);
  }
  const ids = new Set([...replayed.keys(), ...living.keys()]);
  const others = [...ids].filter((id) => replayed.get(id) !== living.get(id));
  return [...fault('impossible in the feed', impossible), ...fault('other than the feed says', others)];
}

async function findInternalErrors({ pool }: Database, companyId: string): Promise<string[]> {
  const { rows } = await pool.query<{ fault: string }>(
    `SELECT 'run: ' || (error::text) AS fault FROM muster.runs WHERE company_id = $1 AND error->>'code' = 'internal_error'
     UNION ALL
     SELECT resource || ': ' || (error::text) FROM muster.walks WHERE company_id = $1 AND error->>'code' = 'internal_error'`,
    [companyId],
  );
  return rows.map((row) => row.fault);
}

async function livingRecords(subject: Subject): Promise<Living> {
  const rows = await query<{ id: string; data: string }>(
    subject,
    `SELECT id, data::text AS data FROM mirror.${subject.resource} WHERE company_id = $1 AND $2 <> '' AND deleted_at IS NULL`,
  );
  return new Map(rows.map(({ id, data }) => [id, data]));
}

/** `$1` is the company, `$2` the resource, `$3` what is given. */
async function query<Row extends QueryResultRow>(
  { db, companyId, resource }: Subject,
  sql: string,
  ...given: string[]
): Promise<Row[]> {
  return (await db.pool.query<Row>(sql, [companyId, resource, ...given])).rows;
}

function fault(what: string, ids: readonly string[]): string[] {
  return ids.length === 0 ? [] : [`${ids.length} ${what}: ${ids.slice(0, 3).join(', ')}`];
}
