import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { countWorkers, longestDelay, removeDeadWorkers } from '../../src/db/tables/workers.js';
import { WorkerPresence } from '../../src/jobs/worker-presence.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

const logger = pino({ level: 'silent' });
const workers = () => countWorkers(database.db.prisma);
const presenceOf = (name: string) => new WorkerPresence(database.db, name, logger);
/** Once the worker's row is so many seconds old. In one transaction, whose time stands still. */
const workersOnceAged = (name: string, seconds: number) =>
  database.db.prisma.$transaction(async (tx) => {
    await tx.$executeRaw`UPDATE muster.workers SET seen_at = now() - make_interval(secs => ${seconds}::float8) WHERE name = ${name}`;
    return countWorkers(tx);
  });
const age = (name: string, seconds: number) =>
  database.db.pool.query('UPDATE muster.workers SET seen_at = now() - make_interval(secs => $2) WHERE name = $1', [
    name,
    seconds,
  ]);

test('a worker counts from its start to its stop', async () => {
  const [one, other] = [presenceOf('one'), presenceOf('other')];
  await Promise.all([one.start(), other.start()]);
  expect(await workers()).toBe(2);
  await Promise.all([one.stop(), one.stop()]);
  expect(await workers()).toBe(1);
  await other.stop();
  expect(await workers()).toBe(0);
  expect(await database.db.prisma.worker.count()).toBe(0);
});

test('a worker that was killed counts no more after some seconds, and its row goes', async () => {
  // It is killed: it says nothing more.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const presence = presenceOf('killed');
    await presence.start();
    expect(await workersOnceAged('killed', 14.9)).toBe(1);
    expect(await workersOnceAged('killed', 15.1)).toBe(0);
    await removeDeadWorkers(database.db);
    expect(await database.db.prisma.worker.count()).toBe(1);
    await age('killed', 3_700);
    await removeDeadWorkers(database.db);
    expect(await database.db.prisma.worker.count()).toBe(0);
    await presence.stop();
  } finally {
    vi.useRealTimers();
  }
});

test('it says again and again that it lives', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const presence = presenceOf('beating');
    await presence.start();
    await age('beating', 16);
    vi.advanceTimersByTime(5_000);
    await waitFor(async () => (await workers()) === 1);
    await presence.stop();
    expect(await workers()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('it stops before its start has resolved, and is never started once it was stopped', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const presence = presenceOf('stopped');
    await Promise.all([presence.start(), presence.stop()]);
    await presence.start();
    expect(vi.getTimerCount()).toBe(0);
    expect(await workers()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('it starts and stops without the database', async () => {
  const { db, close } = await testDatabase();
  const presence = new WorkerPresence(db, 'lonely', logger);
  await close();
  expect(await Promise.all([presence.start(), presence.stop()])).toEqual([undefined, undefined]);
});

test('it says for how long its event loop was held up, for a minute', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const presence = presenceOf('held-up');
    await presence.start();
    const longest = () => longestDelay(database.db.prisma);
    const told = async () => database.db.prisma.worker.findUniqueOrThrow({ where: { name: 'held-up' } });
    const beat = async () => {
      const { seenAt } = await told();
      vi.advanceTimersByTime(5_000);
      await waitFor(async () => (await told()).seenAt > seenAt);
    };
    expect(await longest()).toBeLessThan(3);
    await sleep(50);
    const until = performance.now() + 4_000;
    while (performance.now() < until);
    await beat();
    const heldUp = await longest();
    expect(heldUp).toBeGreaterThan(3);
    for (let n = 0; n < 12; n += 1) await beat();
    expect(await longest()).toBeLessThan(heldUp! - 1);
    await presence.stop();
    expect(await longest()).toBeNull();
  } finally {
    vi.useRealTimers();
  }
});
