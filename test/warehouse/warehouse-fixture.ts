import { pino } from 'pino';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import type { Database } from '../../src/db/connection/database.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { hasNews } from '../../src/db/tables/schema-columns.js';
import { declareTypes } from '../../src/warehouse/declared-types.js';
import { learnPiece } from '../../src/warehouse/schema-sweep.js';
import { addDueTwin } from '../../src/warehouse/typed-twins.js';
import { extendViews, findStaleViews } from '../../src/warehouse/typed-views.js';
import { openWalk, write } from '../mirror/mirror-fixture.js';

/** A catalogue that says nothing of the lists. */
export const NO_ENTRIES: Catalogue = { endpoints: [], get: () => undefined };
const logger = pino({ level: 'silent' });

/** Writes records of a company's list in a walk of its own, as one page, and learns of them as a worker does. */
export async function mirrorRecords(
  db: Database,
  company: CompanyKey,
  records: readonly object[],
  {
    resource = 'employees',
    verified = true,
    catalogue = NO_ENTRIES,
  }: { resource?: string; verified?: boolean; catalogue?: Catalogue } = {},
): Promise<void> {
  const walk = await openWalk(db, company, resource);
  await write(
    db,
    walk,
    records.map((record) => JSON.stringify(record)),
  );
  await db.prisma.walk.update({ where: { id: walk.walkId }, data: { status: 'succeeded', verified, finishedAt: new Date() } });
  await db.prisma.run.update({ where: { id: walk.runId }, data: { finishedAt: new Date() } });
  await learn(db, catalogue);
}

/** What the sweeps of a worker do with the feed. */
export async function learn(db: Database, catalogue: Catalogue = NO_ENTRIES): Promise<void> {
  await stampChanges(db);
  await declareTypes(db, catalogue);
  while (await learnPiece(db, catalogue));
  while (await addDueTwin(db));
  await extendViews(db, logger);
}

/**
 * Whether the sweeps of workers have nothing left to do: every change is counted, every type is decided, and every view has its columns. While
 * no run writes, the views stay as they are from then on. The catalogue flattens one level.
 */
export async function isLearned(db: Database): Promise<boolean> {
  const { rowCount: unnumbered } = await db.pool.query('SELECT FROM muster.change_batches WHERE first_seq IS NULL LIMIT 1');
  return unnumbered === 0 && !(await hasNews(db)) && (await findStaleViews(db)).length === 0;
}

/** The columns of a view, in their order. */
export async function columnsOf(db: Database, view: string): Promise<string[]> {
  const { rows } = await db.pool.query<{ name: string }>(
    'SELECT column_name AS name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position',
    ['warehouse', view],
  );
  return rows.map(({ name }) => name);
}

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

type Members = Readonly<Record<string, Json>>;
const isMembers = (value: Json): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The values of a record that a view must show: scalars and arrays, and what stands in objects, one level down. A null is no value. */
export function valuesOf(record: Members): Json[] {
  return Object.values(record).flatMap((value) => {
    const inner = isMembers(value) && Object.keys(value).length > 0 ? Object.values(value) : [value];
    return inner.filter((each) => each !== null);
  });
}

/** Whether the row of a view shows a value: in a column of its type, as a text, or with the rest. */
export async function shownBy(db: Database, view: string, id: string): Promise<(value: Json) => boolean> {
  const { rows } = await db.pool.query<{ row: Members }>(`SELECT to_jsonb(v) AS row FROM warehouse.${view} v WHERE id = $1`, [
    id,
  ]);
  const shown = new Set<string>();
  const show = (value: Json, depth: number) => {
    shown.add(canonical(value));
    if (typeof value === 'string') {
      shown.add(`at ${Date.parse(value)}`);
      const parsed = parsedJson(value);
      if (parsed !== undefined && typeof parsed !== 'string') show(parsed, depth);
    }
    if (isMembers(value) && depth < 2) for (const inner of Object.values(value)) show(inner, depth + 1);
  };
  for (const value of Object.values(rows[0]!.row)) show(value, 0);
  return (value) =>
    shown.has(canonical(value)) || (typeof value === 'string' && /^\d.*T/.test(value) && shown.has(`at ${Date.parse(value)}`));
}

function parsedJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** The JSON of a value, whatever the order of its keys. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(canonical).join()}]`;
  if (!isMembers(value)) return JSON.stringify(value);
  const entries = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`);
  return `{${entries.toSorted().join()}}`;
}
