import pg from 'pg';
import { MusterError } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';

/** The relation of schema `warehouse` that a name means, and the list whose records it shows. */
export interface ExportedView {
  readonly resource: string;
  readonly list: string;
  /** Quoted, with its schema. */
  readonly name: string;
  /** The list's own view, one row for each living record. */
  readonly isList: boolean;
  /** The view whose columns the log has: a view of versions or changes has those of its list. */
  readonly loggedAs: string;
}

/** The endings of the views of a list whose rows have a number of the feed. */
const FEED_VIEWS = ['_history', '_changes'];

/**
 * Finds what an export's name means: a list, or a view of one: its history, its changes, the elements of its arrays. Throws `unknown_resource` where
 * it means nothing.
 */
export async function findView(client: pg.ClientBase, resource: string): Promise<ExportedView> {
  const lists = await listNames(client);
  const name = `warehouse.${pg.escapeIdentifier(resource)}`;
  if (lists.includes(resource)) return { resource, list: resource, name, isList: true, loggedAs: resource };
  const feedList = listOfFeedView(resource, lists);
  const list = feedList ?? (await listBelow(client, name, lists));
  if (list === undefined || !(await exists(client, name))) throw unknownResource(resource, lists);
  return { resource, list, name, isList: false, loggedAs: feedList ?? resource };
}

async function listNames(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'deleted_at'
     WHERE c.relnamespace = to_regnamespace('mirror') AND c.relkind IN ('r', 'p') ORDER BY 1`,
  );
  return rows.map(({ name }) => name);
}

function listOfFeedView(name: string, lists: readonly string[]): string | undefined {
  return FEED_VIEWS.filter((ending) => name.endsWith(ending))
    .map((ending) => name.slice(0, -ending.length))
    .find((list) => lists.includes(list));
}

/** The one list whose table the view reads. */
async function listBelow(client: pg.ClientBase, view: string, lists: readonly string[]): Promise<string | undefined> {
  const { rows } = await client.query<{ name: string }>(
    Prisma.sql`SELECT DISTINCT c.relname AS name FROM pg_rewrite w
     JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
     JOIN pg_class c ON c.oid = d.refobjid
     WHERE w.ev_class = to_regclass(${view}) AND c.relnamespace = to_regnamespace('mirror')`,
  );
  const read = rows.map(({ name }) => name).filter((name) => lists.includes(name));
  return read.length === 1 ? read[0] : undefined;
}

async function exists(client: pg.ClientBase, view: string): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(Prisma.sql`SELECT to_regclass(${view}) IS NOT NULL AS exists`);
  return rows[0]!.exists;
}

function unknownResource(resource: string, lists: readonly string[]): MusterError {
  return new MusterError(
    'unknown_resource',
    lists.length === 0
      ? 'This database has no mirror yet: run `muster migrate`, or set DATABASE_URL to the database of your workers.'
      : `There is no resource ${JSON.stringify(resource)}. There are: ${lists.join(', ')}. The views of these in schema warehouse ` +
          `can be exported, too: LIST_history, LIST_changes, LIST__MEMBER.`,
  );
}
