import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { claimNotification } from '../../src/db/tables/notifications.js';
import { notificationQueue } from '../../src/jobs/due-queues.js';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import type { QueueBackend } from '../../src/jobs/queue-backend.js';
import { redisBackend } from '../../src/jobs/redis-queue.js';
import { Sweeper } from '../../src/jobs/sweeper.js';
import { Deliverer } from '../../src/notifications/deliverer.js';
import { recordEvent } from '../../src/notifications/events.js';
import { Webhook } from '../../src/notifications/webhook.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';
import { answer, hang, Receiver } from './receiver.js';

// The queue is in Redis if the machine has one; test/process/notifications.test.ts keeps it in PostgreSQL.

const REDIS_URL = redisUrl();
const logger = pino({ enabled: false });

let database: TestDatabase;
let receiver: Receiver;
let stops: (() => Promise<void>)[];

beforeAll(async () => {
  database = await testDatabase();
  await migrateQueue(database.url);
});
beforeEach(async () => {
  await emptyTables(database.db, 'muster.notifications');
  if (REDIS_URL) {
    const redis = new Redis(REDIS_URL);
    await redis.flushdb();
    redis.disconnect();
  }
  receiver = await Receiver.start();
  stops = [() => receiver.goDown()];
});
afterEach(async () => {
  for (const stop of stops.toReversed()) await stop();
});
afterAll(() => database.close());

/** What a worker process does with notifications; gives how to stop it. */
async function startWorker(): Promise<() => Promise<void>> {
  const backend: QueueBackend = REDIS_URL ? redisBackend(REDIS_URL, logger) : postgresBackend(database.url, logger);
  const target = { url: receiver.url, secret: new Secret('canary-signing-secret') };
  // A hanging receiver hangs until its worker stops, and not until a deadline.
  const webhook = new Webhook(target, systemClock, { deadlineMs: 120_000 });
  const deps = { db: database.db, webhook, publicUrl: new URL('http://127.0.0.1'), logger };
  const queue = notificationQueue(backend, new Deliverer({ ...deps, authorizeUrl: () => undefined }));
  const sweeper = new Sweeper(backend, [{ name: 'due', everyMs: 1_000, run: () => queue.enqueueDue() }], logger);
  await queue.start();
  await sweeper.start();
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    await sweeper.stop();
    await queue.stop();
    await webhook.close();
    await backend.close();
  };
  const once = () => (stopped ??= stop());
  stops.push(once);
  return once;
}

async function record(count: number): Promise<string[]> {
  const company = { environment: 'test', companyId: randomUUID() } as const;
  for (let n = 0; n < count; n++)
    await inTransaction(database.db, (tx) => recordEvent(tx, { type: 'run_failed', company, change: randomUUID() }));
  const rows = await database.db.prisma.notification.findMany({ where: company, orderBy: { seq: 'asc' } });
  return rows.map(({ id }) => id);
}
const statuses = async () =>
  (await database.db.prisma.notification.findMany({ orderBy: { seq: 'asc' } })).map(({ status }) => status);

test('every event arrives, and each once, with two workers', async () => {
  await startWorker();
  await startWorker();
  const ids = await record(30);
  await waitFor(async () => (await statuses()).every((status) => status === 'delivered'));
  expect(receiver.ids.toSorted()).toEqual(ids.toSorted());
});

test('one that the receiver hangs on holds up no other, and is taken over when its worker stops', async () => {
  const [stuck] = await record(1);
  receiver.conduct = (response, received) => (received.event.id === stuck ? hang : answer(200))(response, received);
  const stopFirst = await startWorker();
  await waitFor(() => receiver.ids.includes(stuck!));
  const others = await record(12);
  await waitFor(() => others.every((id) => receiver.ids.includes(id)));
  expect(await statuses()).toContain('pending');
  await stopFirst();
  expect(await database.db.prisma.notification.findUnique({ where: { id: stuck! } })).toMatchObject({
    status: 'pending',
    attempts: 0,
  });
  receiver.conduct = answer(200);
  await startWorker();
  await waitFor(async () => (await statuses()).every((status) => status === 'delivered'));
  expect(receiver.ids.filter((id) => id === stuck).length).toBe(2);
});

test('what a worker left behind when it died is sent by the next', async () => {
  const [id] = await record(1);
  // Claimed half a minute ago, and never heard of again.
  await claimNotification(database.db, { id: id! });
  await database.db.pool.query('UPDATE muster.notifications SET next_attempt_at = now()');
  await startWorker();
  await waitFor(async () => (await statuses())[0] === 'delivered');
  expect(receiver.ids).toEqual([id]);
});
