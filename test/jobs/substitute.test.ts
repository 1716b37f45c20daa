import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { recordWorker, removeWorker } from '../../src/db/tables/workers.js';
import { Substitute } from '../../src/jobs/substitute.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(async () => {
  vi.useRealTimers();
  await removeWorker(database.db, { name: 'one' });
});
afterAll(() => database.close());

/** A substitute, what it did, and the moments at which it looked. `look` lets so many seconds pass and waits until it has looked. */
function substituteOf({
  isUnable = false,
  deliver,
}: {
  isUnable?: boolean;
  deliver?: (signal?: AbortSignal) => Promise<void>;
} = {}) {
  let [now, looks] = [0, 0];
  const did: string[] = [];
  const waiting = ['a', 'b'];
  const substitute = new Substitute({
    db: {
      ...database.db,
      prisma: {
        $queryRaw: async (...query: Parameters<typeof database.db.prisma.$queryRaw>) => {
          const rows = await database.db.prisma.$queryRaw(...query);
          looks += 1;
          return rows;
        },
      } as never,
    },
    clock: { monotonic: () => now },
    sweepIssues: async () => {
      did.push('issues');
      if (isUnable) throw new Error('the database is away');
    },
    deliverer: {
      due: async () => waiting.map((id) => ({ id, attempts: 0 })),
      deliver: async (id, signal) => {
        did.push(`deliver ${id}`);
        await deliver?.(signal);
        waiting.splice(waiting.indexOf(id), 1);
      },
    },
    logger: pino({ level: 'silent' }),
  });
  const look = async (seconds: number) => {
    const before = looks;
    now += seconds * 1_000;
    vi.advanceTimersByTime(5_000);
    await waitFor(() => looks > before);
  };
  return { substitute, did, look };
}

test('does the work once no worker has lived for half a minute, and no more when one lives again', async () => {
  const { substitute, did, look } = substituteOf();
  await substitute.start();
  await look(1_000); // from here on nobody is there
  await look(29);
  expect(did).toEqual([]);
  await look(1);
  await waitFor(() => did.length === 3);
  expect(did).toEqual(['issues', 'deliver a', 'deliver b']);
  await recordWorker(database.db, { name: 'one' });
  await look(5);
  await removeWorker(database.db, { name: 'one' });
  await look(5);
  await look(29);
  await substitute.stop();
  expect(did).toHaveLength(3);
});

test('does nothing while a worker lives, for however long', async () => {
  await recordWorker(database.db, { name: 'one' });
  const { substitute, did, look } = substituteOf();
  await substitute.start();
  await look(1_000);
  await look(1_000);
  await substitute.stop();
  expect(did).toEqual([]);
});

test('tries again after what failed', async () => {
  const { substitute, did, look } = substituteOf({ isUnable: true });
  await substitute.start();
  await look(0);
  await look(30);
  await waitFor(() => did.length === 1);
  await look(5);
  await waitFor(() => did.length === 2);
  await substitute.stop();
  expect(did).toEqual(['issues', 'issues']);
});

test('its stop interrupts a delivery that hangs', async () => {
  const hang = (signal?: AbortSignal) => new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
  const { substitute, did, look } = substituteOf({ deliver: hang });
  await substitute.start();
  await look(0);
  await look(30);
  await waitFor(() => did.length === 3);
  await substitute.stop();
  expect(did).toEqual(['issues', 'deliver a', 'deliver b']);
});
