import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import { Deployment } from '../process/deployment.js';
import { type FullPostgres, fullPostgres } from '../support/full-postgres.js';
import { waitFor } from '../support/wait-for.js';

let deployment: Deployment;
let server: FullPostgres;

beforeAll(async () => {
  deployment = await Deployment.open();
  await migrateQueue(deployment.database.url);
  server = await fullPostgres(deployment.database.url);
});
afterAll(async () => {
  await server.close();
  await deployment.close();
});

test('a queue whose first connection was refused works as soon as PostgreSQL takes connections again', async () => {
  server.refuse('muster queue');
  const backend = postgresBackend(server.url, pino({ level: 'silent' }));
  const queue = backend.queue('sweeps');
  await expect(queue.add('job', {})).rejects.toThrow('too many clients');
  server.accept();
  await queue.add('job', {});
  expect(await queue.getWaitingCount()).toBe(1);
  await queue.close();
  await backend.close();
});

// In processes of their own: a worker that tries without a pause never returns to the event loop.
test.each([1, 3, 5, 7])(
  'a worker that PostgreSQL gives %i connections for its queue tries a few times a second',
  async (after) => {
    server.refuse('muster queue', after);
    const before = server.refused;
    const starting = deployment.startWorker({ DATABASE_URL: server.url });
    starting.catch(() => {});
    await waitFor(() => server.refused > before);
    await sleep(3_000);
    expect(server.refused - before).toBeLessThan(60);
    server.accept();
    // It either said that it could not start, and why, or goes on as if nothing had been.
    const worker = await starting.catch((error: unknown) => String(error));
    if (typeof worker === 'string') {
      expect(worker).toMatch(/The process ended \(1\)[^]*too many clients/);
      return;
    }
    worker.kill('SIGTERM');
    expect(await worker.exit).toEqual({ code: 0, signal: null });
  },
);
