import pg from 'pg';
import type { Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { changedRecords } from '../../db/tables/change-batches.js';
import { Prisma } from '../../generated/prisma/client.js';
import { SHOWN_COLUMNS } from '../../mirror/mirror-columns.js';

export interface ExportRequest {
  readonly resource: string;
  /** One of them, or both. */
  readonly environment?: Environment | undefined;
  readonly companyId?: string | undefined;
  /** The records as sent, instead of the typed view. */
  readonly isRaw?: boolean | undefined;
  /** A number of the feed, in decimal: only records that changed after it. */
  readonly since?: string | undefined;
}

/** How a column's values are read and written. Any other type is text. */
type Kind = 'text' | 'boolean' | 'numeric' | 'date' | 'timestamptz' | 'jsonb' | 'bigint' | 'double';

export interface Column {
  readonly name: string;
  readonly kind: Kind;
}

/** The columns of an export in their order, and the text that follows FROM in its query. */
export interface Source {
  readonly columns: readonly Column[];
  readonly from: string;
}

/** Names of types as format_type gives them. */
const KIND_OF_TYPE: Readonly<Record<string, Kind>> = {
  boolean: 'boolean',
  numeric: 'numeric',
  date: 'date',
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

/** Finds the columns and rows of a request in the database. Throws `unknown_resource` where it has none of that name. */
export async function findSource(client: pg.ClientBase, request: ExportRequest): Promise<Source> {
  const { resource, isRaw = false, since } = request;
  const table = `mirror.${pg.escapeIdentifier(resource)}`;
  const view = `warehouse.${pg.escapeIdentifier(resource)}`;
  const ofTable = await columnsOf(client, table);
  if (!ofTable.some(({ name }) => name === 'deleted_at')) throw await unknownResource(client, resource);
  const found = isRaw ? ofTable.filter(({ name }) => RAW.has(name)) : await columnsOf(client, view);
  if (found.length === 0) {
    throw new MusterError(
      'unknown_resource',
      `There is no view ${view} yet. Run \`muster migrate\`, which makes the views, or export the records as sent with --raw.`,
    );
  }
  const relation = isRaw ? `(SELECT * FROM ${table} WHERE deleted_at IS NULL)` : view;
  if (since === undefined) return { columns: found, from: `${relation} AS r ${where(request)}` };
  return changesSource(relation, found, { ...request, since });
}

/**
 * Each record that changed after `since` once, as it is in this snapshot, for a loader to merge. A record that is gone has its key alone. A change
 * after the last number of the feed shows in the row already, and comes again with the next export.
 */
function changesSource(relation: string, found: readonly Column[], request: ExportRequest & { readonly since: string }): Source {
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
    ...KEY.map((name): Column => ({ name, kind: 'text' })),
    { name: op, kind: 'text' },
    { name: seq, kind: 'bigint' },
    ...others,
  ];
  return { columns, from };
}

function where({ environment, companyId }: ExportRequest): string {
  const conditions = [
    ...(environment === undefined ? [] : [`r.environment = ${pg.escapeLiteral(environment)}`]),
    ...(companyId === undefined ? [] : [`r.company_id = ${pg.escapeLiteral(companyId)}::uuid`]),
  ];
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
}

/** The columns of a relation in their order; none where there is no such relation. */
async function columnsOf(client: pg.ClientBase, relation: string): Promise<Column[]> {
  const { rows } = await client.query<{ name: string; type: string }>(
    Prisma.sql`SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
     WHERE attrelid = to_regclass(${relation}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
  );
  return rows.map(({ name, type }) => ({ name, kind: KIND_OF_TYPE[type] ?? 'text' }));
}

async function unknownResource(client: pg.ClientBase, resource: string): Promise<MusterError> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'deleted_at'
     WHERE c.relnamespace = to_regnamespace('mirror') AND c.relkind = 'r' ORDER BY 1`,
  );
  const known = rows.map(({ name }) => name).join(', ');
  return new MusterError(
    'unknown_resource',
    known === ''
      ? 'This database has no mirror yet: run `muster migrate`, or set DATABASE_URL to the database of your workers.'
      : `There is no resource ${JSON.stringify(resource)}. There are: ${known}.`,
  );
}
