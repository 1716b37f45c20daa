import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { expect, onTestFinished, test, vi } from 'vitest';
import { requireCompatible } from '../../../src/db/schema/compatibility.js';
import { pendingMigrations } from '../../../src/db/schema/migrate.js';
import { testDatabase } from '../../support/database.js';

const NEWER = '29990101000000_newer';

test('a process whose folder is replaced by a newer version knows no more migrations than before', async () => {
  const { db, close } = await testDatabase();
  onTestFinished(close);
  expect(await pendingMigrations(db.pool)).toEqual([]);
  const read = vi.spyOn(promises, 'readdir').mockResolvedValue([{ name: NEWER, isDirectory: () => true }] as never);
  syncBuiltinESMExports();
  onTestFinished(() => {
    read.mockRestore();
    syncBuiltinESMExports();
  });
  expect(await pendingMigrations(db.pool)).toEqual([]);
  await db.pool.query('UPDATE muster.compatibility SET needs = $1', [NEWER]);
  await expect(requireCompatible(db.pool)).rejects.toMatchObject({ code: 'process_outdated' });
});
