import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import { QueueWorker } from '../../src/jobs/queue-backend.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';

let database: TestDatabase;
let admin: pg.Client;
beforeAll(async () => {
  database = await testDatabase();
  await migrateQueue(database.url);
  admin = new pg.Client(database.url);
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await database.close();
});

/** Lets PostgreSQL end the next connection that a pool gives out, before its caller has it. The result tells whether it has. */
function endNextConnection(): () => boolean {
  let isEnded = false;
  const { connect } = pg.Pool.prototype;
  vi.spyOn(pg.Pool.prototype, 'connect').mockImplementation(async function (this: pg.Pool, ...callback: unknown[]) {
    const client = await Reflect.apply(connect, this, callback);
    if (callback.length > 0 || isEnded) return client;
    isEnded = true;
    const lost = new Promise((resolve) => client.once('end', resolve));
    await admin.query('SELECT pg_terminate_backend($1)', [client.processID]);
    await lost;
    return client;
  } as typeof connect);
  return () => isEnded;
}

test('a worker whose connection for LISTEN ends before BullMQ has it takes another, and goes on with its jobs', async () => {
  const backend = postgresBackend(database.url, pino({ level: 'silent' }));
  const worked: string[] = [];
  const isEnded = endNextConnection();
  const worker = new QueueWorker(backend, 'runs-test', async ({ name }) => void worked.push(name), { concurrency: 1 });
  const queue = backend.queue('runs-test');
  worker.start();
  try {
    await waitFor(isEnded);
    await queue.add('first', {});
    await waitFor(() => worked.length === 1);
    await queue.add('second', {});
    await waitFor(() => worked.length === 2);
    expect(worked).toEqual(['first', 'second']);
  } finally {
    await worker.stop();
    await queue.close();
    await backend.close();
  }
});
