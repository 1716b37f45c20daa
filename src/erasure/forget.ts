import type { Catalogue, Endpoint } from '../catalogue/endpoint.js';
import { companyNotFound } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import type { Transaction } from '../db/connection/transaction.js';
import { shareConnection } from '../db/tables/connections.js';
import { dropBaseline } from '../db/tables/ledger-erasure.js';
import { fenceList, findIdField, type ListKey, recordSuppressions } from '../db/tables/lists.js';
import { deleteSuppressions, insertSuppressions } from '../db/tables/marks.js';
import { dropCheckpoints } from '../db/tables/walks.js';
import { childPrefix, mirrorTable } from '../mirror/mirror-table.js';
import { idParts } from '../pagers/id-candidate.js';
import {
  type IdValues,
  type ListSuppressions,
  newPerson,
  placeholder,
  type Suppressions,
  withPrefix,
} from '../privacy/suppressions.js';
import { type Erased, eraseRecords, newPlaceholder } from './record-erasure.js';

// A record is forgotten: it is erased, and suppressions keep walks from writing it again. The order is the lock order of every writer: the connection,
// the lists, whose walks are fenced, then the holders. A walk that was opened before does not know the new suppressions, and cannot commit any more.

export interface ForgetDependencies {
  readonly catalogue: Pick<Catalogue, 'endpoints' | 'get'>;
  readonly suppressions: Suppressions;
}

/** A record of a list, by the id under which the mirror has it, or the service would give it. */
export interface RecordToForget {
  readonly list: ListKey;
  readonly id: string;
}

/** A row of the mirror, and the members of its record that may be the id. */
interface Row {
  readonly id: string;
  readonly values: IdValues;
}

/**
 * Erases a record, its earlier versions and those under other ids, and, where it is a parent, its children; and suppresses it, so that no walk brings it
 * back. An unknown record is suppressed as well. Throws `company_not_found`, `unknown_resource`, `mark_key_unreadable`.
 */
export async function forgetRecord(tx: Transaction, deps: ForgetDependencies, { list, id }: RecordToForget): Promise<Erased> {
  const taken = await takeList(tx, deps, list);
  const { endpoint, suppressions, idMember } = taken;
  // Before the first walk of a list it is not known which member the id is.
  const given = new Map((idMember === undefined ? endpoint.id : [idMember]).map((member) => [member, id]));
  const known = [{ id, values: given }, ...(await readRows(tx, taken, { ids: [id] }))];
  const person =
    known.map(({ values }) => suppressions.personOf(values, idMember)).find((each) => each !== undefined) ?? newPerson();
  const added = known.flatMap(({ values }) => suppressions.add(person, values));
  // Before the catalogue came to name ids by another member, the record had a row under another id.
  const earlier = await readRows(tx, taken, { deletedWith: known.flatMap(({ values }) => [...values]) });
  const others = earlier.filter(({ values }) => suppressions.personOf(values, idMember) === person);
  await insertSuppressions(tx, list, [...added, ...others.flatMap(({ values }) => suppressions.add(person, values))]);
  return eraseRows(tx, deps, taken, person, [...new Set([...known, ...others].map((row) => row.id))]);
}

/** Removes the suppressions of a record, so that the next walk writes it again. Returns whether it had any. Throws as `forgetRecord` does. */
export async function unsuppress(tx: Transaction, deps: ForgetDependencies, { list, id }: RecordToForget): Promise<boolean> {
  const { suppressions, members } = await takeList(tx, deps, list);
  // The caller has one id, whichever member the person is suppressed by.
  const persons = new Set(members.flatMap((member) => suppressions.personOf(new Map([[member, id]]), undefined) ?? []));
  await deleteSuppressions(tx, list, [...persons]);
  await recordSuppressions(tx, list);
  // Otherwise a page that has not changed would be skipped forever.
  await dropBaseline(tx, list);
  await dropCheckpoints(tx, list);
  return persons.size > 0;
}

/** Whether a record with this id is kept out. Throws `mark_key_unreadable`. */
export async function isSuppressed(
  db: Pick<Database, 'prisma'>,
  { catalogue, suppressions }: ForgetDependencies,
  { list, id }: RecordToForget,
): Promise<boolean> {
  const known = await suppressions.of(db, list);
  const members = [...(catalogue.get(list.resource)?.id ?? []), ...(known?.members ?? [])];
  return members.some((member) => known?.personOf(new Map([[member, id]]), undefined) !== undefined);
}

/** Erases again the suppressed records that the mirror of a list still holds. Returns how many rows went. Throws as `forgetRecord` does. */
export async function forgetAgain(tx: Transaction, deps: ForgetDependencies, list: ListKey): Promise<number> {
  const taken = await takeList(tx, deps, list);
  const found = new Map<string, string[]>();
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows: readonly Row[] = await readRows(tx, taken, { after });
    for (const { id, values } of rows) {
      const person = taken.suppressions.personOf(values, taken.idMember);
      if (person !== undefined) found.set(person, [...(found.get(person) ?? []), id]);
    }
    after = rows.at(-1)?.id;
  }
  let erased = 0;
  for (const [person, ids] of found) erased += (await eraseRows(tx, deps, taken, person, ids)).rows;
  return erased;
}

/** A list that this transaction has locked, to change its suppressions. */
interface TakenList {
  readonly list: ListKey;
  readonly endpoint: Endpoint;
  readonly suppressions: ListSuppressions;
  /** The member that is the id, once a walk has shown it. */
  readonly idMember: string | undefined;
  /** The members that may be it: by the catalogue, by earlier walks, and by the suppressions of earlier catalogues. */
  readonly members: readonly string[];
}

/** Locks the company and fences the list and its child lists. */
async function takeList(tx: Transaction, { catalogue, ...deps }: ForgetDependencies, list: ListKey): Promise<TakenList> {
  const { resource } = list;
  const endpoint = catalogue.get(resource);
  if (!endpoint) {
    const known = catalogue.endpoints.map((each) => each.resource).join(', ');
    throw new MusterError('unknown_resource', `The catalogue has no list ${resource}: it has ${known}.`);
  }
  if (!(await shareConnection(tx, list))) throw companyNotFound(list);
  const lists = [list, ...childrenOf(catalogue, list)].toSorted((one, other) => (one.resource < other.resource ? -1 : 1));
  for (const each of lists) await fenceList(tx, each, each === list || undefined);
  const suppressions = await deps.suppressions.toAddTo(tx, list);
  const idMember = (await findIdField(tx, list)) ?? undefined;
  const members = [...new Set([...endpoint.id, ...(idMember === undefined ? [] : [idMember]), ...suppressions.members])];
  return { list, endpoint, suppressions, idMember, members };
}

function childrenOf({ endpoints }: ForgetDependencies['catalogue'], list: ListKey): ListKey[] {
  return endpoints.filter(({ parent }) => parent === list.resource).map(({ resource }) => ({ ...list, resource }));
}

async function eraseRows(
  tx: Transaction,
  { catalogue }: ForgetDependencies,
  { list, members }: TakenList,
  person: string,
  ids: readonly string[],
): Promise<Erased> {
  const all = [await eraseRecords(tx, list, { ids, members, placeholderOf: () => placeholder(person) })];
  for (const child of childrenOf(catalogue, list)) {
    for (const parent of ids) {
      const prefix = childPrefix(parent);
      all.push(await eraseRecords(tx, child, { ids: [], prefix, parent, placeholderOf: newPlaceholder }));
    }
  }
  return { rows: all.reduce((rows, each) => rows + each.rows, 0), isFound: all.some(({ isFound }) => isFound) };
}

const ROWS_AT_ONCE = 1_000;

/** The candidates for an id: $3, a JSON array of their names and parts. */
const CANDIDATES = `jsonb_to_recordset($3::jsonb) AS c(name text, parts jsonb)`;
/** The value of a candidate in the row `t`, as IdReader has it; no row where the record has none. chr(92) is the backslash, whatever the session's settings. */
const VALUE = `
  SELECT CASE WHEN count(*) = 1 THEN min(p.text)
              ELSE string_agg(replace(replace(p.text, chr(92), chr(92) || chr(92)), '/', chr(92) || '/'), '/' ORDER BY p.n) END AS value
  FROM (SELECT part.n, found.value #>> '{}' AS text, jsonb_typeof(found.value) AS type
        FROM jsonb_array_elements_text(c.parts) WITH ORDINALITY AS part(path, n),
        LATERAL (SELECT COALESCE(t.data->part.path, t.data #> string_to_array(part.path, '.')) AS value) found) p
  HAVING bool_and(COALESCE(p.type, '') IN ('string', 'number')) AND (count(*) = 1 OR bool_and(p.text <> ''))`;

type WhichRows =
  | { readonly ids: readonly string[] }
  /** The next ones in the order of ids. */
  | { readonly after: string }
  /** The rows that are marked deleted, and whose record has any of these values. */
  | { readonly deletedWith: readonly (readonly [string, string])[] };

async function readRows(tx: Transaction, { list, endpoint, members }: TakenList, which: WhichRows): Promise<Row[]> {
  const { environment, companyId, resource } = list;
  const isChild = endpoint.parent !== undefined;
  const prefixOf = (id: string) => (isChild ? id.slice(0, id.indexOf('/') + 1) : '');
  const [condition, values] = conditionOf(which, prefixOf);
  const rows = await tx.$queryRawUnsafe<{ id: string; values: Record<string, string> }[]>(
    `SELECT id, (SELECT COALESCE(jsonb_object_agg(c.name, v.value), '{}') FROM ${CANDIDATES} JOIN LATERAL (${VALUE}) v ON TRUE) AS values
     FROM ${mirrorTable(resource)} t WHERE environment = $1 AND company_id = $2::uuid AND ${condition}`,
    environment,
    companyId,
    JSON.stringify(members.map((name) => ({ name, parts: idParts(name) }))),
    ...values,
  );
  return rows.map(({ id, values: found }) => ({ id, values: withPrefix(new Map(Object.entries(found)), prefixOf(id)) }));
}

function conditionOf(which: WhichRows, prefixOf: (id: string) => string): [string, unknown[]] {
  if ('ids' in which) return ['id = ANY($4::text[])', [which.ids]];
  if ('after' in which) return [`id > $4 ORDER BY id LIMIT ${ROWS_AT_ONCE}`, [which.after]];
  const { deletedWith } = which;
  return [
    `deleted_at IS NOT NULL AND EXISTS (SELECT FROM unnest($4::text[], $5::text[]) AS p(name, value)
       JOIN ${CANDIDATES} USING (name) JOIN LATERAL (${VALUE}) v ON v.value = p.value)`,
    [deletedWith.map(([member]) => member), deletedWith.map(([, value]) => value.slice(prefixOf(value).length))],
  ];
}
