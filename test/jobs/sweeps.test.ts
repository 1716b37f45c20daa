import { expect, onTestFinished, test } from 'vitest';
import { sweeps } from '../../src/jobs/sweeps.js';
import { testDatabase } from '../support/database.js';

type Dependencies = Parameters<typeof sweeps>[0];

/** The rare sweeps of the release before. */
const RARE = ['old-changes', 'old-flows', 'old-notes', 'old-notifications', 'old-records', 'old-tokens', 'old-workers'];

test('no rare sweep is new: after going back to the release before and forward again, it would be late until its first turn', () => {
  const all = sweeps({ changeRetentionDays: 90, dueExports: {} } as unknown as Dependencies);
  const rare = all.filter(({ everyMs }) => everyMs > 60_000);
  expect(rare.map(({ name }) => name).toSorted()).toEqual(RARE);
});

test('workers and counts of processes that died are removed by one sweep', async () => {
  const { db, close } = await testDatabase();
  onTestFinished(close);
  await db.pool.query(`
    INSERT INTO muster.workers (name, seen_at) VALUES ('dead', now() - interval '2 hours'), ('alive', now());
    INSERT INTO muster.work_counts (process, metrics, counted_at) VALUES ('dead/0', '[]', now() - interval '2 hours'), ('alive/0', '[]', now())`);
  await sweeps({ db } as unknown as Dependencies)
    .find(({ name }) => name === 'old-workers')!
    .run();
  const { rows } = await db.pool.query(
    'SELECT name FROM muster.workers UNION ALL SELECT process FROM muster.work_counts ORDER BY 1',
  );
  expect(rows.map(({ name }) => name)).toEqual(['alive', 'alive/0', 'total']);
});
