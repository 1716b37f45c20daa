import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock as clock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { readReceived } from '../../src/db/tables/ledger.js';
import { claimRun } from '../../src/db/tables/runs.js';
import { KeyHashes } from '../../src/pagers/key-hashes.js';
import { compareEverything } from '../../src/walks/comparison.js';
import { WalkStore } from '../../src/walks/walk-store.js';
import { onboard, openWalk, records, write, writeTogether } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { notQuiet } from '../support/quiet.js';
import { testSuppressions } from '../support/suppressions.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';

const [endpoint] = endpointsOf({ employees: ENTRIES.employees });

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

async function open(company: CompanyKey) {
  const { db } = database;
  const { id: runId } = await db.prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full' } });
  const { id } = await db.prisma.walk.create({ data: { ...company, resource: 'employees', runId, position: 0 } });
  const run = (await claimRun(db, { id: runId, worker: 'worker' }))!;
  return new WalkStore({ db, clock, quiet: notQuiet, comparisons: compareEverything, suppressions: testSuppressions }).open(
    { id, run },
    endpoint!,
    true,
  );
}

test('a list without a row is opened as empty', async () => {
  expect((await open(await onboard(database.db))).fillsEmptyList).toBe(true);
});

test('a list with rows that no walk has proved is not opened as empty', async () => {
  const company = await onboard(database.db);
  await write(database.db, await openWalk(database.db, company), records(3));
  expect((await open(company)).fillsEmptyList).toBe(false);
});

test('the pages of a pass are read in their order, whatever plan PostgreSQL takes', async () => {
  const { db } = database;
  const walk = await openWalk(db, await onboard(db));
  const pages = Array.from({ length: 5 }, (_, number) => ({ number, newFrom: undefined, texts: [`{"id":"${number}"}`] }));
  await writeTogether(db, walk, pages);
  // The first page becomes the last one, so that their rows stand in another order than their numbers.
  await db.pool.query('UPDATE muster.walk_pages SET page = page + 10 WHERE walk_id = $1', [walk.walkId]);
  await db.pool.query('UPDATE muster.walk_pages SET page = 14 - page WHERE walk_id = $1', [walk.walkId]);
  const options = '-c enable_indexscan=off -c enable_bitmapscan=off -c enable_nestloop=off -c enable_mergejoin=off';
  const pool = new pg.Pool({ connectionString: database.url, options });
  const read: Uint32Array[] = [];
  for await (const { keys } of readReceived({ pool }, walk.walkId, 0)) read.push(keys);
  await pool.end();
  expect(read).toEqual(pages.toReversed().map(({ number }) => KeyHashes.of([String(number)]).words));
});
