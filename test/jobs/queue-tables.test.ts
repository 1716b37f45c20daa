import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.close());

const query = async (text: string) => (await database.db.pool.query(text)).rows;

async function addJob(): Promise<void> {
  const backend = postgresBackend(database.url, pino({ level: 'silent' }));
  const queue = backend.queue('tokens');
  await queue.add('a job', {});
  await queue.close();
  await backend.close();
}

test('tables that somebody has emptied, all of them, are made anew, by however many processes start', async () => {
  await migrateQueue(database.url);
  await addJob();
  const tables = (await query(`SELECT format('bullmq.%I', tablename) AS name FROM pg_tables WHERE schemaname = 'bullmq'`)) as {
    name: string;
  }[];
  await query(`TRUNCATE ${tables.map(({ name }) => name).join(', ')} CASCADE`);
  await Promise.all([1, 2, 3].map(() => migrateQueue(database.url)));
  await addJob();
  expect(await query('SELECT count(*)::int AS jobs FROM bullmq.job')).toEqual([{ jobs: 1 }]);
});

test('jobs are not dropped because the table of versions alone was emptied', async () => {
  await migrateQueue(database.url);
  await addJob();
  await query('TRUNCATE bullmq.migration');
  await expect(migrateQueue(database.url)).rejects.toMatchObject({ code: 'migration_failed' });
  expect(await query('SELECT count(*)::int AS jobs FROM bullmq.job')).toEqual([{ jobs: 1 }]);
});

test('a schema of somebody else under that name is named, and not touched', async () => {
  await query('CREATE SCHEMA bullmq; CREATE TABLE bullmq.job (theirs int)');
  await expect(migrateQueue(database.url)).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringMatching(
      /^Schema bullmq is kept for the tables of the queue: .*already exists, and Muster did not make it/,
    ),
  });
  expect(await query('SELECT theirs FROM bullmq.job')).toEqual([]);
});
