import pg from 'pg';
import type { ArrayView } from '../db/tables/schema-arrays.js';
import { SHOWN_COLUMNS } from '../mirror/mirror-columns.js';
import { mirrorTable } from '../mirror/mirror-table.js';
import { changesQuery, changesView } from './changes-view.js';
import { asOfFunctions, historyView, typedView, versionsQuery } from './history.js';
import { pathText } from './view-comments.js';
import { jsonAt } from './view-text.js';

/** A view with the columns of the log, of records or of elements in them, and what it shows besides them. */
export interface RecordView {
  /** The view of the log whose columns it has. */
  readonly columnsOf: string;
  /** Quoted, with its schema. */
  readonly name: string;
  /** The comment on the view in the database: says what the view is. */
  readonly comment: string;
  /** The columns before the keys' columns, and their expressions. */
  readonly leading: Readonly<Record<string, string>>;
  /** The columns after the view's first columns. Columns that are added later follow all of these. */
  readonly trailing: Readonly<Record<string, string>>;
  /** The expression of the record: a jsonb. */
  readonly data: string;
  /** The FROM clause. */
  readonly from: string;
  /** The functions whose rows are those of the view. */
  readonly functions: readonly ViewFunction[];
}

/** A function that returns rows of a view. */
interface ViewFunction {
  /** Its quoted name with its schema and the types of its parameters. */
  readonly signature: string;
  /** The statement that makes or replaces it. */
  readonly text: string;
}

export const REST = '_rest';
const KEY = keyOf('environment', 'company_id', 'id');
const LIVING_COLUMNS = {
  ...Object.fromEntries(SHOWN_COLUMNS.map((name) => [`_${name}`, `t.${name}`])),
  _verified_at: 'l.last_verified_at',
};
const VERSION_COLUMNS = keyOf('_valid_from', '_valid_to', '_is_current', '_op', '_seq', '_next_seq');

function keyOf(...names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, `t.${name}`]));
}

/** The views of a resource: the living records, every version of each, and the changes. */
export function viewsOf(resource: string): readonly RecordView[] {
  const living = `${mirrorTable(resource)} t
    LEFT JOIN muster.lists l ON l.environment = t.environment AND l.company_id = t.company_id AND l.resource = ${pg.escapeLiteral(resource)}
    WHERE t.deleted_at IS NULL`;
  const list = { columnsOf: resource, leading: KEY, data: 't.data' };
  return [
    {
      ...list,
      name: typedView(resource),
      comment: `The living records of the list ${resource}`,
      trailing: LIVING_COLUMNS,
      from: living,
      functions: [],
    },
    {
      ...list,
      name: historyView(resource),
      comment: `Every version of each record of the list ${resource}, from the change feed`,
      trailing: VERSION_COLUMNS,
      from: `(${versionsQuery(resource)}) t`,
      functions: asOfFunctions(resource),
    },
    {
      ...list,
      name: changesView(resource),
      comment: `The changes of the list ${resource}, in the order of their numbers`,
      leading: { ...keyOf('_seq', '_op', '_changed_at'), ...KEY },
      trailing: {},
      from: `(${changesQuery(resource)}) t`,
      functions: [],
    },
  ];
}

/** The living records of a list, as a FROM clause with its condition. */
export function livingRecords(resource: string): Pick<RecordView, 'from' | 'data'> {
  return { from: `${mirrorTable(resource)} t WHERE t.deleted_at IS NULL`, data: 't.data' };
}

/** The view of the elements of an array: those of the living records. An object in place of an array counts as one element. */
export function elementsView({ view, resource, path, innerPath }: ArrayView): RecordView {
  const outer = `CROSS JOIN LATERAL ${elementsOf(jsonAt(path, 't.data'))} e`;
  const inner = innerPath === null ? '' : `CROSS JOIN LATERAL ${elementsOf(jsonAt(innerPath, 'e.data'))} i`;
  const isObject = innerPath === null ? '' : ` AND jsonb_typeof(e.data) = 'object'`;
  const data = innerPath === null ? 'e.data' : 'i.data';
  return {
    columnsOf: view,
    name: typedView(view),
    comment: `The elements of ${pathText([...path, ...(innerPath ?? [])])} in the living records of the list ${resource}; paths begin in the element`,
    leading: { ...KEY, _idx: 'e.idx', ...(innerPath !== null && { _idx_2: 'i.idx' }) },
    trailing: {},
    data,
    from: `${mirrorTable(resource)} t ${outer} ${inner} WHERE t.deleted_at IS NULL${isObject} AND jsonb_typeof(${data}) = 'object'`,
    functions: [],
  };
}

/** The elements of a value, and their places in it, from 0. */
function elementsOf(value: string): string {
  return `(SELECT x.value AS data, (x.n - 1)::integer AS idx FROM jsonb_array_elements(
    CASE jsonb_typeof(${value}) WHEN 'array' THEN ${value} WHEN 'object' THEN jsonb_build_array(${value}) ELSE '[]' END) WITH ORDINALITY AS x(value, n))`;
}

/** How many columns the view has besides those of keys. */
export function fixedColumns({ leading, trailing }: RecordView): number {
  return Object.keys(leading).length + Object.keys(trailing).length + 1;
}
