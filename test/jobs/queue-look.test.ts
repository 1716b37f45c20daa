import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { migrateQueue, postgresBackend } from '../../src/jobs/postgres-queue.js';
import type { QueueBackend } from '../../src/jobs/queue-backend.js';
import { QueueLook } from '../../src/jobs/queue-look.js';
import { redisBackend } from '../../src/jobs/redis-queue.js';
import { RunQueue } from '../../src/jobs/run-queue.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { redisUrl } from '../support/redis.js';

const logger = pino({ level: 'silent' });
/** Set by the tests. */
const time = { now: 0, monotonic: 0 };
const clock = { ...systemClock, now: () => time.now, monotonic: () => time.monotonic };

describe.each(['postgres', 'redis'].filter((kind) => kind === 'postgres' || redisUrl()))('a queue on %s', (kind) => {
  let database: TestDatabase;
  let server: FreezableProxy;
  let backend: QueueBackend;
  let look: QueueLook;

  beforeAll(async () => {
    database = await testDatabase();
    await migrateQueue(database.url);
    if (kind === 'redis') {
      const redis = new Redis(redisUrl()!);
      await redis.flushdb();
      redis.disconnect();
    }
    const target = new URL(kind === 'postgres' ? database.url : redisUrl()!);
    server = await FreezableProxy.before(target);
    backend = kind === 'postgres' ? postgresBackend(target.href, logger) : redisBackend(target.href, logger);
    look = new QueueLook(backend, clock);
  });
  afterAll(async () => {
    await look.stop();
    await backend.close();
    await server.close();
    await database.close();
  });

  test('shows what waits, is put off and is repeated, each environment by itself', async () => {
    const runs = new RunQueue(backend, logger);
    const run = (id: string, environment: 'production' | 'test') => ({ id, epoch: 0n, environment });
    await runs.dispatch([run('1', 'production'), run('2', 'production'), run('3', 'test')]);
    await runs.dispatch([run('4', 'test')], 600_000);
    const sweeps = backend.queue('sweeps');
    await sweeps.upsertJobScheduler('rarely', { every: 3_600_000 }, { name: 'rarely' });
    await sweeps.upsertJobScheduler('often', { every: 2_000 }, { name: 'often' });
    const nextOf = new Map((await sweeps.getJobSchedulers()).map(({ key, next }) => [key, new Date(next!)]));
    const jobs = backend.queue('runs-test');
    const [job] = await jobs.getWaiting();
    time.now = job!.timestamp + 90_000;
    await Promise.all([runs.close(), sweeps.close(), jobs.close()]);

    const states = new Map((await look.look()).map((state) => [state.queue, state]));
    expect([...states.keys()]).toEqual(['runs-production', 'runs-test', 'tokens', 'notifications', 'exports', 'sweeps']);
    expect(states.get('runs-production')).toMatchObject({
      environment: 'production',
      waiting: 2,
      active: 0,
      delayed: 0,
      failed: 0,
    });
    expect(states.get('runs-test')).toMatchObject({ environment: 'test', waiting: 1, delayed: 1, oldestWaitingSeconds: 90 });
    expect(states.get('runs-production')!.oldestWaitingSeconds).toBeGreaterThanOrEqual(90);
    expect(states.get('tokens')).toEqual({
      queue: 'tokens',
      environment: null,
      waiting: 0,
      active: 0,
      delayed: 0,
      failed: 0,
      oldestWaitingSeconds: null,
      repeatable: [],
    });
    const { repeatable } = states.get('sweeps')!;
    expect(repeatable.map(({ name, everySeconds }) => [name, everySeconds]).toSorted()).toEqual([
      ['often', 2],
      ['rarely', 3_600],
    ]);
    for (const { name, nextAt } of repeatable) expect(nextAt).toEqual(nextOf.get(name));
    const times = repeatable.map(({ nextAt }) => nextAt!.getTime());
    expect(times).toEqual(times.toSorted((one, other) => one - other));
  });

  test('that does not answer is said to be away, to all who ask meanwhile, and looked at again when it is back', async () => {
    server.freeze();
    // What was seen is kept for a second.
    time.monotonic += 1_000;
    const asked = Array.from({ length: 50 }, () => look.look());
    for (const answer of await Promise.allSettled(asked))
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'queue_unavailable', status: 503 } });
    server.thaw();
    expect(await look.look()).toHaveLength(6);
  });
});

/** Stands between a client and its server, and can stop passing anything on. */
class FreezableProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isFrozen = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** From then on `target` leads here. */
  static async before(target: URL): Promise<FreezableProxy> {
    const [host, port] = [target.hostname, Number(target.port)];
    const server = createServer();
    const proxy = new FreezableProxy(server);
    server.on('connection', (client) => {
      const upstream = connect(port, host);
      for (const socket of [client, upstream]) proxy.#take(socket);
      client.pipe(upstream);
      upstream.pipe(client);
      if (proxy.#isFrozen) client.pause();
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    target.hostname = '127.0.0.1';
    target.port = String((server.address() as AddressInfo).port);
    return proxy;
  }

  freeze(): void {
    this.#isFrozen = true;
    for (const socket of this.#sockets) socket.pause();
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #take(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
  }
}
