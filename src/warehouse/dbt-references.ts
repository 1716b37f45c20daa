import pg from 'pg';
import type { Endpoint } from '../catalogue/endpoint.js';
import type { Reader } from '../db/connection/read-only.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { idParts } from '../pagers/id-candidate.js';
import type { DbtColumn, DbtReference, DbtView } from './dbt-input.js';
import { keyOf } from './dbt-names.js';

/** How many values of a column are compared: the first ones rule most columns out. */
const FIRST_LOOK = 20;
const LOOK = 5_000;

/** The id of a child list's record begins with its parent's id, encoded as in a path. */
const PARENT_ID = `CASE WHEN strpos(split_part("id", '/', 1), '%') = 0 THEN split_part("id", '/', 1) ELSE (
      SELECT convert_from(string_agg(CASE WHEN length(m[1]) = 3 THEN decode(substr(m[1], 2), 'hex') ELSE convert_to(m[1], 'UTF8') END, ''), 'UTF8')
      FROM regexp_matches(split_part("id", '/', 1), '%[0-9A-F][0-9A-F]|.', 'g') AS m) END`;

interface Place {
  readonly endpoint: Endpoint;
  readonly view: DbtView;
  /** The path of the array whose elements the view has; empty for the list's own view, undefined where it is not known. */
  readonly outer: readonly string[] | undefined;
  /** The lists that may be referred to. */
  readonly resources: readonly string[];
}

/**
 * The references of a view. Declared ones are taken as they are. Of the other columns, one is a reference if its name names a list and every examined
 * value is the id of a record there: values alone agree by chance where ids are small numbers.
 */
export async function findReferences(
  db: Reader,
  { endpoint, view, outer, resources }: Place,
): Promise<{ readonly references: readonly DbtReference[] }> {
  const { resource, parent, references: declared = {} } = endpoint;
  const references: DbtReference[] = [];
  const isOwn = view.name === resource;
  const listAbove = isOwn ? parent : resource;
  if (listAbove !== undefined && resources.includes(listAbove))
    references.push({
      key: '_parent_key',
      column: 'id',
      path: '',
      value: isOwn ? PARENT_ID : '"id"',
      resource: listAbove,
      isDeclared: true,
    });
  for (const column of view.columns) {
    const value = idIn(column, view);
    if (value === undefined) continue;
    const path = outer && [...outer, ...column.path!].join('.');
    const isDeclared = path !== undefined && Object.hasOwn(declared, path);
    const referred = isDeclared ? declared[path]! : listNamed(column.name, resources, resource);
    if (referred === undefined || !resources.includes(referred)) continue;
    if (!isDeclared && !(await agree(db, view, value, referred, resource))) continue;
    const key = references.some((each) => each.key === keyOf(column.name)) ? keyOf(`${column.name}_2`) : keyOf(column.name);
    references.push({ key, column: column.name, path: path ?? '', value, resource: referred, isDeclared });
  }
  return { references };
}

/** The value of a key's column as an id: a number is the text without zeros at its end. Undefined where no id can be in it. */
function idIn({ name, type, path }: DbtColumn, { columns }: DbtView): string | undefined {
  if (path === undefined) return undefined;
  if (type === 'text') return pg.escapeIdentifier(name);
  if (type !== 'numeric' && !type.startsWith('numeric(')) return undefined;
  const number = `trim_scale(${pg.escapeIdentifier(name)})::text`;
  const text = `${name}__text`;
  return columns.some((each) => each.name === text) ? `COALESCE(${number}, ${pg.escapeIdentifier(text)})` : number;
}

/** The list that the name of a column names: `department_id`, `home_department_id` and `department__id` name `departments`. The longest name counts. */
function listNamed(column: string, resources: readonly string[], own: string): string | undefined {
  const words = column
    .replace(/_\d+$/, '')
    .replaceAll('__', '_')
    .replace(/_(id|uid|uuid|guid|key|ref)$/, '');
  const named = resources.flatMap((resource) =>
    namesOf(resource)
      .filter((name) => words === name || words.endsWith(`_${name}`))
      .map((name) => ({ resource, name })),
  );
  const [first] = named.toSorted(
    (a, b) => b.name.length - a.name.length || Number(a.resource === own) - Number(b.resource === own),
  );
  return first?.resource;
}

/** The name of a list and, by the rules of English, that of one of its records. */
function namesOf(resource: string): string[] {
  const forms: readonly [RegExp, string][] = [
    [/people$/, 'person'],
    [/children$/, 'child'],
    [/men$/, 'man'],
    [/ies$/, 'y'],
    [/(s|x|z|ch|sh)es$/, '$1'],
    [/s$/, ''],
  ];
  return [resource, ...forms.flatMap(([ending, one]) => (ending.test(resource) ? [resource.replace(ending, one)] : []))];
}

async function agree(db: Reader, view: DbtView, value: string, referred: string, own: string): Promise<boolean> {
  return (await allAgree(db, view, value, referred, own, FIRST_LOOK)) && allAgree(db, view, value, referred, own, LOOK);
}

/** Whether all of so many values are ids of that list, and one of them is not the id of the record itself. */
async function allAgree(
  db: Reader,
  view: DbtView,
  value: string,
  referred: string,
  own: string,
  limit: number,
): Promise<boolean> {
  const ownId = referred === own ? 'id' : 'NULL::text';
  const { rows } = await withDatabaseErrors(
    db.query<{ agree: boolean }>(
      `SELECT count(*) FILTER (WHERE v.id IS DISTINCT FROM v.value) > 0 AND count(*) FILTER (WHERE r.id IS NULL) = 0 AS agree
       FROM (SELECT environment, company_id, ${ownId} AS id, ${value} AS value FROM ${relation(view.name)}
             WHERE ${value} IS NOT NULL LIMIT ${limit}) v
       LEFT JOIN ${relation(referred)} r ON r.environment = v.environment AND r.company_id = v.company_id AND r.id = v.value`,
    ),
  );
  return rows[0]!.agree;
}

/**
 * The columns of the key `id` where that key is the id: `id_2`, since `id` is taken. Another candidate of the catalogue's is the id if the records carry it,
 * and a child's id is that of its parent, too.
 */
export async function findRepeatedId(db: Reader, endpoint: Endpoint, view: DbtView): Promise<string[]> {
  const carried = (member: string) => view.columns.find(({ path }) => path?.join('.') === member);
  const candidate = endpoint.id.find((each) => idParts(each).every(carried));
  const column = candidate === undefined ? undefined : carried(candidate);
  if (endpoint.parent !== undefined || column === undefined || !/^id_\d+$/.test(column.name)) return [];
  const value = idIn(column, view);
  if (value === undefined) return [];
  const { rows } = await withDatabaseErrors(
    db.query<{ repeats: boolean }>(
      `SELECT bool_and(id IS NOT DISTINCT FROM value) AS repeats FROM (SELECT id, ${value} AS value FROM ${relation(view.name)} LIMIT ${LOOK}) v`,
    ),
  );
  return rows[0]!.repeats ? [column.name, `${column.name}__text`] : [];
}

function relation(name: string): string {
  return `warehouse.${pg.escapeIdentifier(name)}`;
}
