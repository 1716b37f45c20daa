import { pino } from 'pino';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { DatabaseAccess } from '../../src/doctor/database-access.js';
import { checkQueue, type QueuePlace } from '../../src/doctor/queue.js';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import type { QueueBackend } from '../../src/jobs/queue-backend.js';
import { redisBackend } from '../../src/jobs/redis-queue.js';
import { found } from '../doctor/findings.js';
import { testDatabase } from '../support/database.js';
import { anyPort } from '../support/port.js';
import { redisUrl } from '../support/redis.js';
import { RedisServer } from '../support/redis-server.js';

const database = await testDatabase();
const logger = pino({ level: 'silent' });
const access = new DatabaseAccess(database);
/** Half an hour later than it is. */
const clock = { ...systemClock, now: () => Date.now() + 1_800_000 };
const look = (place: QueuePlace) => found(checkQueue({ place, access, clock }));
afterAll(() => database.close());

async function fill(backend: QueueBackend): Promise<void> {
  const [tokens, runs] = [backend.queue('tokens'), backend.queue('runs-test')];
  await tokens.add('tokens', {});
  await tokens.add('tokens', {});
  await runs.add('runs-test', {});
  await tokens.close();
  await runs.close();
  await backend.close();
}

const JOBS = [
  'ok: runs-test: 1 job waiting, the oldest for 30 minutes',
  'problem: tokens: 2 jobs waiting, the oldest for 30 minutes',
];

test('in PostgreSQL: before the first start, empty, and with jobs that no worker takes', async () => {
  expect(await look('PostgreSQL')).toEqual(['ok: in PostgreSQL; its tables are made at the first start']);
  await migrateQueue(database.url);
  expect(await look('PostgreSQL')).toEqual(['ok: in PostgreSQL', 'ok: no job waits']);
  await fill(postgresBackend(database.url, logger));
  const lines = await look('PostgreSQL');
  expect(lines.toSorted()).toEqual(['ok: in PostgreSQL', ...JOBS]);
});

describe.skipIf(!redisUrl())('in Redis', () => {
  const servers: RedisServer[] = [];
  const start = async (...args: string[]) => {
    const server = await RedisServer.start(...args);
    servers.push(server);
    return server;
  };
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.remove();
  });

  test('its version, mode and policy, and the jobs that wait: and nothing is written', async () => {
    const server = await start('--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru');
    const place = { redisUrl: server.url };
    expect(await look(place)).toEqual([
      expect.stringMatching(/^ok: (Redis|Valkey) \d+\.\d+\.\d+, standalone, answers$/),
      'warning: it may evict the keys of the queue when its memory is full (maxmemory-policy allkeys-lru)',
      'ok: no job waits',
    ]);
    expect(await server.command('DBSIZE')).toBe(0);
    await fill(redisBackend(server.url, logger));
    const changes = async () =>
      /rdb_changes_since_last_save:(\d+)/.exec(String(await server.command('INFO', 'persistence')))?.[1];
    const before = await changes();
    expect((await look(place)).slice(2)).toEqual(JOBS);
    expect(await changes()).toBe(before);
  });

  test('one that is away, refuses the password, hangs, or can carry no queue is said to be so, without the password', async () => {
    const password = 'doctor-canary-password';
    const at = (port: number) => ({ redisUrl: `redis://:${password}@127.0.0.1:${port}` });
    const [guarded, frozen, sentinel] = [
      await start('--requirepass', 'another-password'),
      await start(),
      await start('--sentinel'),
    ];
    frozen.kill('SIGSTOP');
    const lines = [
      ...(await look(at(anyPort()))),
      ...(await look(at(guarded.port))),
      ...(await look({ redisUrl: frozen.url })),
      ...(await look({ redisUrl: sentinel.url })),
    ];
    expect(lines).toEqual([
      expect.stringMatching(/^problem: Redis at .* nothing listens there/),
      expect.stringMatching(/^problem: Redis at .* it refuses the user or the password/),
      expect.stringMatching(/^problem: Redis at .* there was no answer in time/),
      expect.stringMatching(/^problem: REDIS_URL: the server at .* is a Sentinel/),
    ]);
    expect(lines.join()).not.toContain(password);
  });

  test('nothing is asked where REDIS_URL is wrong', async () => {
    expect(await look('wrong')).toEqual(['warning: not looked at: REDIS_URL is wrong']);
  });
});
