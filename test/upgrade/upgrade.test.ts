import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../src/db/connection/database.js';
import { migrate } from '../../src/db/schema/migrate.js';
import { findToken } from '../../src/db/tables/tokens.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { emptyDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';
import { kept, makeFirstVersion } from './first-version.js';

const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;

let sandbox: Sandbox;
let database: Awaited<ReturnType<typeof emptyDatabase>>;
let db: Database;
let harness: SyncHarness;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: [kept.settled, kept.underWay].map(({ companyId }, n) => ({
      companyId,
      name: n === 0 ? 'Settled' : 'Under way',
      employees: 60,
      documents: 35,
    })),
  });
  for (const { companyId } of [kept.settled, kept.underWay]) mark(companyId, 12, 'x');
  mark(kept.underWay.companyId, 31, 'y');
  sandbox.list(kept.underWay.companyId, 'employees').remove(50, 1);
  database = await emptyDatabase();
  await makeFirstVersion(database.url);
  await migrate(database.url, pino({ level: 'silent' }));
  db = openDatabase({ url: database.url });
  harness = syncHarness(db, sandbox, endpointsOf({ employees: ENTRIES.employees, documents: ENTRIES.documents }));
});
afterAll(async () => {
  await harness.close();
  await db.close();
  await database.close();
  await sandbox.stop();
});

function mark(companyId: string, at: number, marker: string): void {
  const list = sandbox.list(companyId, 'employees');
  list.change(at, list.texts()[at]!.replace('{', `{"marker":"${marker}",`));
}

async function feed(): Promise<object[]> {
  const { rows } = await db.pool.query<object>('SELECT seq::text, resource, id, op, data::text FROM mirror.changes ORDER BY seq');
  return rows;
}

test('the change feed and the mirror are as they were', async () => {
  expect(await feed()).toEqual(kept.feed);
  const { companyId } = kept.settled;
  for (const resource of ['employees', 'documents'] as const)
    expect(await mirrored(db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));
});

test('a refresh token whose answer was lost is sent again, for as long as nothing is known of it', async () => {
  expect(await findToken(db.prisma, kept.settled)).toMatchObject({ isUnanswered: true, putOffs: 1, transientFailures: 3 });
  expect(await findToken(db.prisma, kept.underWay)).toMatchObject({ isUnanswered: true, putOffs: 0, transientFailures: 0 });
  const { rows } = await db.pool.query(
    'SELECT max(ambiguous_attempts) AS most FROM muster.tokens WHERE attempt_started_at IS NOT NULL',
  );
  expect(rows).toEqual([{ most: 1 }]);
});

test('a run that was under way goes on from its checkpoint, and loses nothing', async () => {
  const { companyId } = kept.underWay;
  const asked = sandbox.requests.all('/employees').length;
  await harness.work(kept.run);
  const run = (await harness.runs.find(kept.run))!;
  const [employees, documents] = run.walks;
  expect(run.status).toBe('succeeded');
  expect(employees).toMatchObject({ verified: true, resumed: true, pages: 7, received: 59, updated: 1, deleted: 1 });
  expect(documents).toMatchObject({ verified: true, received: 35, unchanged: 35 });
  // Three of the seven pages had been committed.
  expect(sandbox.requests.all('/employees').length - asked).toBe(4);
  for (const resource of ['employees', 'documents'] as const)
    expect(await mirrored(db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));
  expect((await feed()).slice(0, kept.feed.length)).toEqual(kept.feed);
});

test('a list goes on by its last walk where that kept its hashes whole, and compares everything once where it did not', async () => {
  const { companyId } = kept.settled;
  const edit = async (resource: string) => {
    const { rows } = await db.pool.query<{ id: string }>(
      `UPDATE mirror."${resource}" SET data = '{"edited": true}' WHERE (company_id, id) IN (
         SELECT company_id, id FROM mirror."${resource}" WHERE company_id = $1 ORDER BY id LIMIT 1) RETURNING id`,
      [companyId],
    );
    expect(rows).toHaveLength(1);
  };
  await edit('employees');
  await edit('documents');
  const [employees, documents] = (await harness.sync(kept.settled, NIGHTLY)).walks;
  // The night before, one employee had changed, of whose page only the difference was kept.
  expect(employees).toMatchObject({ verified: true, updated: 1 });
  expect(documents).toMatchObject({ verified: true, updated: 0 });
  await harness.sync(kept.settled, { mode: 'full' });
  for (const resource of ['employees', 'documents'] as const)
    expect(await mirrored(db, resource, companyId)).toEqual(upstream(sandbox, resource, companyId));
  await edit('employees');
  expect((await harness.sync(kept.settled, NIGHTLY)).walks[0]).toMatchObject({ verified: true, updated: 0 });
});
