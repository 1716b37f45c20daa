import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { skipUnchanged } from '../../src/unchanged/skip-unchanged.js';
import { compareEverything } from '../../src/walks/comparison.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { RESOURCES } from './company-model.js';
import { findFaults } from './mirror-oracle.js';
import { OperatedCompany } from './operated-company.js';
import { shareOf } from './share.js';

/** `CAMPAIGN_SEEDS=1000 npm run test:campaign -- operator-actions` for a real campaign, `FIRST_SEED` to replay one. */
const SEEDS = Number(process.env.CAMPAIGN_SEEDS ?? shareOf(60));
const FIRST = Number(process.env.FIRST_SEED ?? 1);
const STEPS = 14;

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

const seeds = Array.from({ length: SEEDS }, (_, n) => FIRST + n);

test.each(seeds)('seed %i: whatever is done to half-done walks, the mirror holds what it says', async (seed) => {
  const { db } = database;
  const operated = await OperatedCompany.open(db, seed);
  onTestFinished(() => operated.close());
  const { company, model } = operated;
  for (let step = 1; step <= STEPS; step += 1) {
    await operated.step(step);
    expect(await findFaults(db, company, model), operated.history).toEqual([]);
  }
  const run = await operated.settle();
  const walks = RESOURCES.map((resource) => ({ resource, verified: true }));
  expect(run, operated.history).toMatchObject({ status: 'succeeded', mode: 'full', walks });
  expect(await findFaults(db, company, model, true), operated.history).toEqual([]);
});

/** A seed that reaches nothing of this passes whatever is broken. */
test('the seeds reach what they are for', async () => {
  const { rows } = await database.db.pool.query<{ what: string; times: number }>(`
    SELECT 'resumed' AS what, count(*)::int AS times FROM muster.walks WHERE resumed
    UNION ALL SELECT 'by a baseline', count(*)::int FROM muster.walks WHERE verified AND baseline_walk_id IS NOT NULL
    UNION ALL SELECT 'verified in a later pass', count(*)::int FROM muster.walks WHERE verified AND pass > 1
    UNION ALL SELECT 'deleting', count(*)::int FROM muster.walks WHERE deleted > 0
    UNION ALL SELECT 'held', count(*)::int FROM muster.holds`);
  // Where nothing is left uncompared, no walk has a baseline.
  const isReached = ({ what, times }: (typeof rows)[number]) =>
    times >= Math.floor(SEEDS / 5) || (what === 'by a baseline' && skipUnchanged === compareEverything);
  expect(rows.filter((row) => !isReached(row))).toEqual([]);
});
