import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource } from '../../src/warehouse/export/export-resource.js';
import { EXPORT_FORMATS } from '../../src/warehouse/export/export-settings.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { openDuck } from './duck.js';
import { learn, mirrorRecords } from './warehouse-fixture.js';

// A record's keys become columns, and columns stand beside the aliases, columns and functions that statements use. Of these names every alias of one or
// two letters is tried, and each word of the statements of exports.

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz'];
const PAIRS = LETTERS.flatMap((first) => LETTERS.map((second) => first + second));
/** Words of PostgreSQL, of the statements, and columns of the tables and views. */
const WORDS = `
  line found asked seen record row rows values value text data json jsonb numeric date boolean bigint timestamptz timestamp
  environment company_id id op seq _op _seq first_seen_at changed_at deleted_at _first_seen_at _changed_at _verified_at _valid_from _valid_to _is_current
  row_to_json array_to_string replace abs max scale min_scale isfinite bool_and array coalesce unnest infinity
  mirror warehouse muster employees batch_id position record_id first_seq resource ids ops starts lengths
  select from where order group limit offset user current_user session_user default table column all any null true false case when end
  ctid xmin oid tableoid ordinality distinct lateral`;
const NAMES = [...new Set([...LETTERS, ...PAIRS, ...WORDS.trim().split(/\s+/)])].filter((name) => name !== 'id');
/** A view has so many columns at most, and some of them are its own. */
const AT_ONCE = 200;

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await testDatabase();
  folder = mkdtempSync(join(tmpdir(), 'muster-export-'));
  const { db } = database;
  const company = await onboard(db);
  for (let n = 0; n * AT_ONCE < NAMES.length; n++) {
    const names = NAMES.slice(n * AT_ONCE, (n + 1) * AT_ONCE);
    const resource = `names_${n}`;
    await db.pool.query(`CREATE TABLE mirror.${resource} (LIKE mirror.employees INCLUDING ALL)`);
    // Some are numbers and dates: what is asked of their columns before they are written to Parquet differs.
    const record = { id: 'one', ...Object.fromEntries(names.map((name, at) => [name, valueOf(name, at)])) };
    await mirrorRecords(db, company, [record], { resource });
  }
  await learn(db);
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

function valueOf(name: string, at: number): unknown {
  return [`of ${name}`, at + 0.5, '2026-01-31', '2026-01-31T02:00:00Z', { inner: `of ${name}` }, [name]][at % 6];
}

test.each(EXPORT_FORMATS.flatMap((format) => [undefined, '0'].map((since) => ({ format, since }))))(
  'an export as $format since $since has a column for a key of any name',
  async ({ format, since }) => {
    const duck = await openDuck();
    for (let n = 0; n * AT_ONCE < NAMES.length; n++) {
      const resource = `names_${n}`;
      const path = join(folder, `${resource}-${since}.${format}`);
      const destination = await openFileDestination(path);
      const { rows, columns } = await exportResource({ db: database.db, request: { resource, since }, format, destination });
      expect(rows).toBe(1);
      expect(columns.length).toBeGreaterThan(Math.min(AT_ONCE, NAMES.length - n * AT_ONCE));
      const { rows: view } = await database.db.pool.query<{ row: Record<string, unknown> }>(
        `SELECT to_jsonb(v.*) AS row FROM warehouse.${resource} v`,
      );
      const expected = view[0]!.row;
      if (format === 'ndjson') expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject(expected);
      else {
        const options = format === 'csv' ? ', header = true, all_varchar = true' : '';
        const read = await duck.rows(`SELECT count(COLUMNS(*))::INT FROM read_${format}('${path}'${options})`);
        expect(read[0]).toEqual(columns.map(({ name }) => (expected[name] === null ? 0 : 1)));
      }
    }
    duck.close();
  },
);
