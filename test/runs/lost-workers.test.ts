import { afterAll, beforeAll, expect, test } from 'vitest';
import { claimRun } from '../../src/db/tables/runs.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

let sandbox: Sandbox;
let database: TestDatabase;
let harness: SyncHarness;
beforeAll(async () => {
  sandbox = await startSandbox({ companies: Array.from({ length: 3 }, (_, n) => ({ name: `C${n}`, employees: 3 })) });
  database = await testDatabase();
  harness = syncHarness(database.db, sandbox, endpointsOf({ employees: ENTRIES.employees }));
});
afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

/** A run that a worker has claimed and says nothing of any more. */
async function lose(id: string, worker: string): Promise<void> {
  expect(await claimRun(database.db, { id, worker })).toBeDefined();
  await database.db.prisma.run.update({ where: { id }, data: { heartbeatAt: new Date(0) } });
}

async function queued(n: number): Promise<string> {
  const company = await harness.onboard(sandbox.companies[n]!.companyId);
  return (await harness.runs.request({ company, trigger: 'manual' })).id;
}

test('a run that three workers in a row did not survive ends, and so do its walks', async () => {
  const id = await queued(0);
  for (const worker of ['a', 'b', 'c']) await lose(id, worker);
  expect(await harness.work(id)).toMatchObject({
    status: 'failed',
    error: { code: 'worker_died' },
    walks: [{ status: 'failed', error: { code: 'worker_died' } }],
  });
});

test('two lost workers end no run, and neither do three between which a page was committed', async () => {
  const [two, three] = [await queued(1), await queued(2)];
  for (const worker of ['a', 'b']) await lose(two, worker);
  expect(await harness.work(two)).toMatchObject({ status: 'succeeded' });
  for (const worker of ['a', 'b', 'c', 'd']) {
    await lose(three, worker);
    if (worker === 'c') await database.db.prisma.walk.updateMany({ where: { runId: three }, data: { pages: { increment: 1 } } });
  }
  const { deaths } = (await claimRun(database.db, { id: three, worker: 'e' }))!;
  expect(deaths).toBe(2);
});
