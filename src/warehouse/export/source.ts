import pg from 'pg';
import type { Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { changedRecords } from '../../db/tables/change-batches.js';
import { Prisma } from '../../generated/prisma/client.js';
import { SHOWN_COLUMNS } from '../../mirror/mirror-columns.js';
import { declaredTypes } from './declared-types.js';
import type { ExportedView } from './exported-view.js';

export interface ExportRequest {
  /** A list, or the name of a view of one in schema `warehouse`. */
  readonly resource: string;
  /** One of them, or both. */
  readonly environment?: Environment | undefined;
  readonly companyId?: string | undefined;
  /** The records as sent, instead of the typed view. */
  readonly isRaw?: boolean | undefined;
  /** A number of the feed, in decimal: only records that changed after it, or changes and versions with a greater number. */
  readonly since?: string | undefined;
}

/** How a column's values are read and written. Any other type is text. */
type Kind = 'text' | 'uuid' | 'boolean' | 'numeric' | 'date' | 'timestamp' | 'timestamptz' | 'jsonb' | 'bigint' | 'double';

export interface Column {
  readonly name: string;
  readonly kind: Kind;
  /** The type that the catalogue declares, for example `numeric(12,2)`. */
  readonly declared?: string | undefined;
}

/** The columns of an export in their order, and the texts that follow FROM and ORDER BY in its query. */
export interface Source {
  readonly columns: readonly Column[];
  readonly from: string;
  readonly order: string;
}

/** Names of types as format_type gives them. */
const KIND_OF_TYPE: Readonly<Record<string, Kind>> = {
  uuid: 'uuid',
  boolean: 'boolean',
  numeric: 'numeric',
  date: 'date',
  'timestamp without time zone': 'timestamp',
  'timestamp with time zone': 'timestamptz',
  json: 'jsonb',
  jsonb: 'jsonb',
  smallint: 'bigint',
  integer: 'bigint',
  bigint: 'bigint',
  real: 'double',
  'double precision': 'double',
};

const KEY = ['environment', 'company_id', 'id'];
const RAW = new Set([...KEY, 'data', ...SHOWN_COLUMNS]);
/** The places of an element in its arrays, and the number of a version. They follow the key in the order of rows. */
const WITHIN_RECORD = ['_idx', '_idx_2', '_seq'];

/** Finds the columns and rows of a request in the database. Throws `unknown_resource` where the view is missing, or lacks what the request asks for. */
export async function findSource(client: pg.ClientBase, view: ExportedView, request: ExportRequest): Promise<Source> {
  const { isRaw = false, since } = request;
  if (!view.isList && isRaw) {
    throw new MusterError(
      'unknown_resource',
      `${request.resource} is a view of ${view.list}, and only a list has records as sent: export ${view.list} with --raw, or ${request.resource} without it.`,
    );
  }
  const table = `mirror.${pg.escapeIdentifier(view.list)}`;
  const found = isRaw
    ? (await columnsOf(client, table)).filter(({ name }) => RAW.has(name))
    : await columnsOf(client, view.name, await declaredTypes(client, view));
  if (found.length === 0) {
    throw new MusterError(
      'unknown_resource',
      `There is no view ${view.name} yet. Run \`muster migrate\`, which makes the views, or export the records as sent with --raw.`,
    );
  }
  const names = new Set(found.map(({ name }) => name));
  const relation = isRaw ? `(SELECT * FROM ${table} WHERE deleted_at IS NULL)` : view.name;
  const order = orderOf(view, names);
  if (since === undefined) return { columns: found, from: `${relation} AS r ${where(request)}`, order };
  if (view.isList) return { ...changesSource(relation, found, { ...request, since }), order: orderOf(view, new Set(KEY)) };
  if (names.has('_seq'))
    return { columns: found, from: `${relation} AS r ${where(request, `r._seq > ${pg.escapeLiteral(since)}::bigint`)}`, order };
  throw new MusterError(
    'unknown_resource',
    `--since is for a list, its _history and its _changes. ${request.resource} is a view of ${view.list} without numbers of the feed: export it without --since.`,
  );
}

/** Rows of one company are next to each other, in the order of the table's index. Changes are in the order of the feed. */
function orderOf({ resource, isList }: ExportedView, names: ReadonlySet<string>): string {
  const columns = !isList && resource.endsWith('_changes') && names.has('_seq') ? ['_seq'] : [...KEY, ...WITHIN_RECORD];
  return columns
    .filter((name) => names.has(name))
    .map((name) => `r.${name}`)
    .join(', ');
}

/**
 * Each record that changed after `since` once, as it is in this snapshot, for a loader to merge. A record that is gone has its key alone. A change
 * after the last number of the feed shows in the row already, and comes again with the next export.
 */
function changesSource(
  relation: string,
  found: readonly Column[],
  request: ExportRequest & { readonly since: string },
): Omit<Source, 'order'> {
  const [op, seq] = request.isRaw ? ['op', 'seq'] : ['_op', '_seq'];
  const others = found.filter(({ name }) => !KEY.includes(name));
  const from = `(
    SELECT c.environment, c.company_id, c.id, c.seq AS ${seq},
      CASE WHEN r.id IS NULL THEN 'delete' WHEN c.op = 'delete' THEN 'restore' ELSE c.op END AS ${op}
      ${others.map(({ name }) => `, r.${pg.escapeIdentifier(name)}`).join('')}
    FROM (${changedRecords({ resource: request.resource, after: request.since })}) c
    LEFT JOIN ${relation} AS r ON r.environment = c.environment AND r.company_id = c.company_id AND r.id = c.id
  ) AS r ${where(request)}`;
  const columns: Column[] = [
    ...found.filter(({ name }) => KEY.includes(name)),
    { name: op, kind: 'text' },
    { name: seq, kind: 'bigint' },
    ...others,
  ];
  return { columns, from };
}

function where({ environment, companyId }: ExportRequest, ...more: string[]): string {
  const conditions = [
    ...(environment === undefined ? [] : [`r.environment = ${pg.escapeLiteral(environment)}`]),
    ...(companyId === undefined ? [] : [`r.company_id = ${pg.escapeLiteral(companyId)}::uuid`]),
    ...more,
  ];
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
}

/** The columns of a relation in their order; none where there is no such relation. */
async function columnsOf(
  client: pg.ClientBase,
  relation: string,
  declared: ReadonlyMap<string, string> = new Map(),
): Promise<Column[]> {
  const { rows } = await client.query<{ name: string; type: string }>(
    Prisma.sql`SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
     WHERE attrelid = to_regclass(${relation}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
  );
  return rows.map(({ name, type }) => ({ name, kind: KIND_OF_TYPE[type] ?? 'text', declared: declared.get(name) }));
}
