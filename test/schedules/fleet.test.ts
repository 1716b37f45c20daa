import { afterAll, beforeAll, expect, test } from 'vitest';
import { keyText } from '../../src/core/company.js';
import { catalogueOf, ScheduledFleet, type StartedRun } from '../runs/scheduled-fleet.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { type StatementTap, tapStatements } from '../support/statement-tap.js';

const COMPANIES = 1_000;
const MINUTE = 60_000;

let database: TestDatabase;
let tap: StatementTap;
let fleet: ScheduledFleet;
beforeAll(async () => {
  database = await testDatabase();
  tap = await tapStatements(database.url);
  fleet = await ScheduledFleet.open(database.url, tap.url);
});
afterAll(async () => {
  await fleet.close();
  await tap.close();
  await database.close();
});

test('a thousand companies with a list every ten minutes are each in time, before, during and after a night, by few statements', async () => {
  await fleet.set('2036-06-04T01:00:30Z');
  await fleet.onboard(COMPANIES);
  const worker = fleet.worker(catalogueOf({ employees: null, shifts: '*/10 * * * *', departments: null }));
  await worker.lists();
  await worker.nights();
  const started: StartedRun[] = [];
  let ofSweeps = 0;
  for (let minute = 0; minute < 210; minute += 1) {
    await fleet.pass(1);
    const before = tap.statements.length;
    await worker.nights();
    await worker.lists();
    ofSweeps += tap.statements.length - before;
    started.push(...(await fleet.queued()));
    await fleet.end();
    // A list waits for the night of its company, which has just ended.
    await worker.lists();
    started.push(...(await fleet.queued()));
    await fleet.end();
  }
  const ofCompany = groupBy(started);
  expect(ofCompany.size).toBe(COMPANIES);
  for (const runs of ofCompany.values()) {
    expect(runs.filter(({ trigger }) => trigger === 'nightly')).toHaveLength(1);
    const times = runs.filter(({ trigger }) => trigger === 'scheduled').map(({ at }) => at);
    expect(times.length).toBeGreaterThanOrEqual(20);
    for (const [i, time] of times.slice(1).entries()) expect(time - times[i]!).toBeLessThanOrEqual(11 * MINUTE);
    for (const { trigger, resources } of runs)
      expect(resources).toEqual(trigger === 'nightly' ? ['employees', 'departments'] : ['shifts']);
  }
  // 22 runs of a company; fifty companies take some ten statements.
  expect(ofSweeps / started.length).toBeLessThan(0.4);

  // Between two turns nothing is due: the sweep of the lists asks three questions.
  await fleet.db.pool.query(`UPDATE muster.scheduled_lists SET next_sync_at = now() + interval '5 minutes'`);
  const before = tap.statements.length;
  await worker.lists();
  expect(tap.statements.length - before).toBeLessThanOrEqual(3);
});

function groupBy(runs: readonly StartedRun[]): Map<string, StartedRun[]> {
  const groups = new Map<string, StartedRun[]>();
  for (const run of runs) groups.set(keyText(run), [...(groups.get(keyText(run)) ?? []), run]);
  return groups;
}
