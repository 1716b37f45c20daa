import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { expect, test } from 'vitest';
import { pythonEnvironment, runProgram } from '../support/python-environment.js';
import type { Json } from '../warehouse/warehouse-fixture.js';
import { HR_SHAPES, type HrShape } from './hr-shapes.js';
import { arrayViews, lostValues, rowsOf, viewColumns, withDigits } from './kept-promises.js';
import { LAST_NIGHT, type Members, staffs } from './people.js';
import { type ShapeWorld, shapeWorld } from './shape-world.js';

// npm run shapes:dlt: the same nights of the same lists loaded by Muster and by dlt, as its documentation begins, into the same PostgreSQL. It writes the
// table of docs/beside-dlt.md, and needs Python and a network.

const PROGRAM = fileURLToPath(new URL('../../bench/peers/dlt_shape.py', import.meta.url));
const REQUIREMENTS = fileURLToPath(new URL('requirements.txt', import.meta.url));
const RESULT = fileURLToPath(new URL('../../docs/beside-dlt.md', import.meta.url));
/** The nights on which a list differs from the one before in more than its values. */
const LOADED: readonly number[] = [0, 4, 9, 15, 18, 21, 23, LAST_NIGHT];
/** All values of the records are looked for on these nights. */
const LOOKED_AT: ReadonlySet<number> = new Set([9, 18, LAST_NIGHT]);
const STAFFS = staffs(300, 300);

interface Outcome {
  columns: number;
  types: Map<string, number>;
  children: number;
  values: number;
  lost: number;
  /** Rows of people whom the service does not have any more. */
  gone: number;
  /** Some of the values that were lost. */
  readonly samples: Json[];
  /** Nights that could not be loaded. */
  failed: number;
}

test('the same lists, by Muster and by dlt', async () => {
  const python = join(await pythonEnvironment(REQUIREMENTS), 'python');
  const lines: string[] = [];
  for (const shape of HR_SHAPES) {
    const world = await shapeWorld(shape, STAFFS, { sockets: true });
    const state = mkdtempSync(join(tmpdir(), 'muster-dlt-'));
    const [ours, theirs] = [newOutcome(), newOutcome()];
    try {
      for (const night of LOADED) {
        await world.pass(night);
        if (!(await loadByDlt(python, world, shape, state))) theirs.failed += 1;
        if (LOOKED_AT.has(night)) {
          await countValues(world, ours, (companyId, ids) => rowsByMuster(world, shape, companyId, ids));
          await countValues(world, theirs, (companyId, ids) => rowsByDlt(world, shape, companyId, ids));
        }
      }
      await describeMuster(world, shape, ours);
      await describeDlt(world, shape, theirs);
    } finally {
      await world.close();
      rmSync(state, { recursive: true, force: true });
    }
    if (theirs.samples.length > 0) console.log(`dlt lost of ${shape.name}, for example: ${JSON.stringify(theirs.samples)}`);
    lines.push(lineOf(shape.source, 'Muster', ours), lineOf('', 'dlt', theirs));
    writeFileSync(RESULT, documentOf(lines));
    expect(ours).toMatchObject({ lost: 0, gone: 0 });
  }
});

function newOutcome(): Outcome {
  return { columns: 0, types: new Map(), children: 0, values: 0, lost: 0, gone: 0, failed: 0, samples: [] };
}

async function loadByDlt(
  python: string,
  { database, serviceUrl, served }: ShapeWorld,
  shape: HrShape,
  state: string,
): Promise<boolean> {
  const { code, output } = await runProgram(
    python,
    [PROGRAM],
    {
      PATH: process.env['PATH'],
      HOME: state,
      LIST: shape.name,
      KEY: keyOf(shape),
      COMPANIES: JSON.stringify([...served.keys()]),
      SERVICE_URL: serviceUrl,
      DATABASE_URL: database.url,
      STATE: state,
      RUNTIME__DLTHUB_TELEMETRY: 'false',
    },
    300_000,
  );
  if (code !== 0) console.error(`dlt failed with ${shape.name}:\n${output.slice(-600)}`);
  return code === 0;
}

/** The id in dlt's names: snake case, and levels parted by two underscores. */
function keyOf({ entry }: HrShape): string {
  const snake = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
  return entry.id.split('.').map(snake).join('__');
}

type Rows = (companyId: string, ids: readonly string[]) => Promise<Map<string, Members>>;

async function countValues({ served }: ShapeWorld, outcome: Outcome, rows: Rows): Promise<void> {
  for (const [companyId, records] of served) {
    const found = await rows(companyId, [...records.keys()]);
    for (const [id, text] of records) {
      const record = withDigits(text) as Members;
      outcome.values += scalarsIn(record);
      const lost = lostValues(record, found.get(id) ?? {});
      outcome.lost += lost.length;
      if (outcome.samples.length < 40) outcome.samples.push(...lost);
    }
  }
}

function scalarsIn(value: Json): number {
  if (value === null) return 0;
  return typeof value === 'object' ? Object.values(value).reduce<number>((sum, each: Json) => sum + scalarsIn(each), 0) : 1;
}

/** All rows of each id, as members of one object. */
async function rowsByMuster(world: ShapeWorld, shape: HrShape, companyId: string, ids: readonly string[]) {
  const rows = await rowsOf(world.database.db.pool, shape.name, companyId, ids);
  return new Map([...rows].map(([id, all]) => [id, { all }]));
}

async function rowsByDlt({ database }: ShapeWorld, shape: HrShape, companyId: string, ids: readonly string[]) {
  const { pool } = database.db;
  const key = keyOf(shape);
  const { rows } = await pool.query<{ id: string; dlt: string; row: string }>(
    `SELECT "${key}"::text AS id, _dlt_id AS dlt, to_jsonb(t)::text AS row FROM dlt."${shape.name}" t WHERE company_id = $1`,
    [companyId],
  );
  const found = new Map<string, { all: Members[] }>(ids.map((id) => [id, { all: [] }]));
  const owners = new Map<string, string>();
  for (const { id, dlt, row } of rows) {
    owners.set(dlt, id);
    found.get(id)?.all.push(withDigits(row) as Members);
  }
  // A child table is named after its parent, so parents come first.
  for (const table of await dltTables(pool, shape)) {
    if (table === shape.name) continue;
    const children = await pool.query<{ dlt: string; parent: string; row: string }>(
      `SELECT _dlt_id AS dlt, _dlt_parent_id AS parent, to_jsonb(t)::text AS row FROM dlt."${table}" t`,
    );
    for (const { dlt, parent, row } of children.rows) {
      const id = owners.get(parent);
      if (id === undefined) continue;
      owners.set(dlt, id);
      found.get(id)?.all.push(withDigits(row) as Members);
    }
  }
  return found;
}

async function dltTables(pool: pg.Pool, shape: HrShape): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT table_name::text AS name FROM information_schema.tables
     WHERE table_schema = 'dlt' AND starts_with(table_name, $1) ORDER BY length(table_name), 1`,
    [shape.name],
  );
  return rows.map(({ name }) => name);
}

async function describeMuster({ database }: ShapeWorld, shape: HrShape, outcome: Outcome): Promise<void> {
  const { pool } = database.db;
  const children = (await arrayViews(pool, shape.name)).map(({ view }) => view);
  const views = await viewColumns(pool, shape.name);
  const own = new Set([
    'environment',
    'company_id',
    'id',
    '_idx',
    '_idx_2',
    '_rest',
    '_first_seen_at',
    '_changed_at',
    '_verified_at',
  ]);
  for (const view of [shape.name, ...children])
    count(
      outcome,
      views.get(view)!.filter(({ name }) => !own.has(name)),
    );
  outcome.children = children.length;
}

async function describeDlt({ database, served }: ShapeWorld, shape: HrShape, outcome: Outcome): Promise<void> {
  const { pool } = database.db;
  const tables = await dltTables(pool, shape);
  const { rows } = await pool.query<{ name: string; type: string }>(
    `SELECT column_name::text AS name, data_type::text AS type FROM information_schema.columns
     WHERE table_schema = 'dlt' AND table_name = ANY($1::text[]) AND NOT starts_with(column_name, '_dlt_') AND column_name <> 'company_id'`,
    [tables],
  );
  count(outcome, rows);
  outcome.children = tables.length - 1;
  const found = await pool.query<{ rows: number }>(`SELECT count(*)::int AS rows FROM dlt."${shape.name}"`);
  outcome.gone = found.rows[0]!.rows - [...served.values()].reduce((sum, { size }) => sum + size, 0);
}

function count(outcome: Outcome, columns: readonly { readonly type: string }[]): void {
  outcome.columns += columns.length;
  const short: Readonly<Record<string, string>> = {
    'timestamp with time zone': 'timestamptz',
    'timestamp without time zone': 'timestamp',
    'double precision': 'double',
    'character varying': 'text',
  };
  for (const { type } of columns) {
    const name = short[type] ?? type;
    outcome.types.set(name, (outcome.types.get(name) ?? 0) + 1);
  }
}

function lineOf(source: string, by: string, { columns, types, children, values, lost, gone, failed }: Outcome): string {
  const kinds = [...types].toSorted(([, a], [, b]) => b - a).map(([type, n]) => `${n} ${type}`);
  return `| ${source} | ${by} | ${columns} | ${kinds.join(', ')} | ${children} | ${lost} of ${values.toLocaleString('en-US')} | ${gone} | ${failed} |`;
}

function documentOf(lines: readonly string[]): string {
  return `# Muster beside dlt

What Muster and [dlt](https://dlthub.com) 1.26 make of the same lists in the same PostgreSQL. The lists are those of eleven HR systems, rebuilt from public documentation with
invented values (\`test/shapes\`): a pilot company of five people, then two of 300, over thirty nights of which ${LOADED.length} are loaded. On the way keys come and vanish, kinds change,
digits grow, a few records are odd on one night, and arrays of one become objects.

dlt is used as its documentation begins: the source \`rest_api\`, rows merged by company and id, nested arrays as child tables (\`bench/peers/dlt_shape.py\`). Muster is used with
the few declared types that the shapes have in their catalogue entries. Made by \`npm run shapes:dlt\`.

| list | by | columns | types | child tables or views | values lost or changed | deleted people still there | loads that failed |
|---|---|---:|---|---:|---:|---:|---:|
${lines.join('\n')}

- **Columns** are those of keys, of the list and its child tables together. Muster keeps what has no column in \`_rest\`, and an array in a column of the list as well as in its view.
- **Values lost or changed**: of all values that are not null in the records of nights ${[...LOOKED_AT].join(', ')}, those that are in no row of their person, whatever column they are in. With dlt, keys in
  other scripts meet in one column, since columns are named in ASCII; a JSON number with a fraction is a double, whose digits end at about 17; and a text such as \`no\` in a column of booleans is \`false\`.
- **Deleted people**: rows of people whom the service does not have any more. dlt merges, and does not notice deletions unless a list is replaced whole each time.
- The speed of both is another comparison: \`npm run bench:peers\`.
`;
}
