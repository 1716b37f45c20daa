import { expect, test } from 'vitest';
import { openDatabase } from '../../src/db/connection/database.js';
import { runStep } from '../../src/db/connection/step.js';
import { Prisma } from '../../src/generated/prisma/client.js';
import { startSandbox } from '../../src/sandbox/sandbox.js';
import { testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from './company-fixture.js';
import { syncHarness } from './sync-harness.js';

test('a connection plans the statement of a commit once, and never for its values alone', async () => {
  const database = await testDatabase();
  const sandbox = await startSandbox({ companies: ['One', 'Other'].map((name) => ({ name, employees: 60 })) });
  const db = openDatabase({ url: database.url, stepPoolSize: 1 });
  const harness = syncHarness(db, sandbox, endpointsOf({ employees: ENTRIES.employees }));
  try {
    // Each is at least one commit, however many pages share it.
    for (const { companyId } of sandbox.companies) await harness.sync(await harness.onboard(companyId));
    const rows = await runStep<{ generic: number; custom: number }>(
      db,
      Prisma.sql`SELECT generic_plans::int AS generic, custom_plans::int AS custom FROM pg_prepared_statements
       WHERE statement LIKE '%incoming AS%' AND statement NOT LIKE '%pg_prepared%' AND name <> ''`,
    );
    expect(rows).toHaveLength(1);
    expect(rows[0]!.generic).toBeGreaterThan(1);
    expect(rows[0]!.custom).toBe(0);
  } finally {
    await harness.close();
    await db.close();
    await sandbox.stop();
    await database.close();
  }
});
