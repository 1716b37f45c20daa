import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { anyPort } from '../support/port.js';
import { startMuster } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const REDIS_SERVER = 'redis-server';

/** `up` with a database of its own and no provider needs to be told. */
const withSandbox = (command: string) => (command === 'up' ? ['up', '--sandbox'] : [command]);

describe('at the start', () => {
  let database: TestDatabase;
  let home: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    database = await testDatabase();
    home = mkdtempSync(join(tmpdir(), 'muster-start-'));
    env = {
      DATABASE_URL: database.url,
      MUSTER_HOME: home,
      PORT: '0',
      MUSTER_ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    };
  });

  afterAll(async () => {
    await database.close();
    rmSync(home, { recursive: true, force: true });
  });

  test.each(['up', 'api', 'worker'])('%s says that Redis cannot be reached, and ends', async (command) => {
    const muster = startMuster(withSandbox(command), { ...env, REDIS_URL: 'redis://:hunter2@127.0.0.1:1' });
    expect(await muster.exit).toEqual({ code: 1, signal: null });
    expect(muster.stderr).toMatch(/muster: Redis at 127\.0\.0\.1:1 .*refused.*REDIS_URL.* \[queue_unavailable\]$/m);
    expect(muster.stdout + muster.stderr).not.toContain('hunter2');
  });

  test('so it does with a Redis that accepts and never answers', async () => {
    const muster = startMuster(['worker'], { ...env, REDIS_URL: `redis://127.0.0.1:${await deafServer()}` });
    expect(await muster.exit).toEqual({ code: 1, signal: null });
    expect(muster.stderr).toMatch(/muster: Redis at 127\.0\.0\.1:\d+ .*no answer/);
  });

  test.each(['up', 'api', 'worker'])('a signal ends %s while it waits for a database that does not answer', async (command) => {
    const { port, connected } = await deafDatabase();
    const muster = startMuster(withSandbox(command), { ...env, DATABASE_URL: `postgres://muster@127.0.0.1:${port}/muster` });
    await connected;
    muster.kill('SIGTERM');
    expect(await muster.exit).toEqual({ code: 0, signal: null });
  });

  test.skipIf(process.platform !== 'linux')('a home that nobody can make is named, and ends it', async () => {
    const muster = startMuster(['up'], { MUSTER_HOME: '/proc/nope', PORT: '0' });
    expect(await muster.exit).toEqual({ code: 2, signal: null });
    expect(muster.stderr).toMatch(/muster: MUSTER_HOME: the folder \/proc\/nope cannot be made/);
  });

  test('where nothing is kept in the home, it need not be there', async () => {
    const file = join(home, 'a-file');
    writeFileSync(file, '');
    const muster = startMuster(['up'], {
      ...env,
      MUSTER_HOME: join(file, 'no-folder'),
      PORT: String(anyPort()),
      MUSTER_ADMIN_TOKEN: 'an-admin-token-of-the-tests',
      TEST_BASE_URL: 'https://api.example.com',
      TEST_AUTH_URL: 'https://login.example.com',
      TEST_CLIENT_ID: 'muster',
      TEST_CLIENT_SECRET: 'a-client-secret',
    });
    await muster.waitForOutput(/Ctrl-C stops everything/);
    expect(muster.stderr).toContain('give commands the address: --url http://127.0.0.1:');
    muster.kill('SIGTERM');
    expect(await muster.exit).toEqual({ code: 0, signal: null });
  });

  test.each([
    ['127.0.0.1:1', /127\.0\.0\.1:1 .*refused.*DATABASE_URL/],
    ['localhost:1', /localhost:1 .*refused.*DATABASE_URL/],
    ['nobody.invalid:5432', /nobody\.invalid:5432 .*(no host of that name|could not be looked up).*DATABASE_URL/],
  ])('a database at %s that cannot be reached is named, and why', async (host, message) => {
    const muster = startMuster(['migrate'], { ...env, DATABASE_URL: `postgres://muster:hunter2@${host}/muster` });
    expect(await muster.exit).toEqual({ code: 1, signal: null });
    expect(muster.stderr).toMatch(message);
    expect(muster.stdout + muster.stderr).not.toContain('hunter2');
  });

  /** Accepts connections and says nothing. */
  async function deafServer(): Promise<number> {
    return (await deafDatabase()).port;
  }

  async function deafDatabase(): Promise<{ port: number; connected: Promise<unknown> }> {
    const server: Server = createServer((socket) => socket.on('error', () => {}));
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    return { port: typeof address === 'object' && address ? address.port : 0, connected: once(server, 'connection') };
  }
});

describe('at the stop', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await Deployment.open({ redisUrl: redisUrl() });
  });
  afterAll(() => deployment.close());

  test('connections that never sent a whole request are not waited for', async () => {
    const api = await deployment.startApi();
    const head = `POST /api/companies HTTP/1.1\r\nhost: muster\r\nauthorization: Bearer ${deployment.adminToken}\r\n`;
    for (const text of [
      '',
      head.slice(0, 40),
      `${head}content-type: application/json\r\ncontent-length: 100\r\n\r\n{"environment`,
    ]) {
      const socket = connect(Number(deployment.port), '127.0.0.1').on('error', () => {});
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      socket.write(text);
    }
    await deployment.call('GET', '/healthz');
    api.kill('SIGTERM');
    expect(await api.exit).toEqual({ code: 0, signal: null });
    expect(api.stderr).not.toContain('stopping took too long');
  });

  test('a worker, which has no drain, gets no more time to stop for one', async () => {
    const worker = await deployment.startWorker({ DRAIN_SECONDS: '300' });
    const holder = await deployment.database.db.pool.connect();
    onTestFinished(() => holder.release(true));
    // Each of the two tables is waited for by itself, and both together for longer than a stop may take.
    await holder.query('BEGIN; LOCK TABLE muster.workers, muster.work_counts');
    worker.kill('SIGTERM');
    expect(await worker.exit).toEqual({ code: 0, signal: null });
    expect(worker.stderr).toContain('stopping took too long');
  });

  test.each(['up', 'api', 'worker'])('a signal ends %s while it is being read, or has just begun', async (command) => {
    // bin/muster looks for the program, and begins to read it. Node 24 has read it all before the signal is delivered: it then reaches the listener that takes over.
    const signalled = `
      import fs from 'node:fs';
      import { syncBuiltinESMExports } from 'node:module';
      const { existsSync } = fs;
      fs.existsSync = (path) => {
        setImmediate(() => process.kill(process.pid, 'SIGTERM'));
        return existsSync(path);
      };
      syncBuiltinESMExports();`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(signalled)}`;
    const muster = startMuster([command], { ...deployment.env, PORT: '0', NODE_OPTIONS });
    expect(await muster.exit, muster.stderr).toEqual({ code: 0, signal: null });
  });
});

describe.skipIf(!redisUrl())('with a Redis that goes down while a worker runs', () => {
  let redis: ChildProcess | undefined;
  let deployment: Deployment;
  const port = anyPort();

  beforeAll(async () => {
    await startRedis();
    deployment = await Deployment.open({
      redisUrl: `redis://127.0.0.1:${port}`,
      sandbox: { companies: ['One', 'Two'].map((name) => ({ name, employees: 50 })) },
    });
  });

  afterEach(() => stopRedis());
  afterAll(() => deployment.close());

  test('it comes back to work by itself, and logs the outage once', async () => {
    const [first, second] = deployment.sandbox.companies.map(({ companyId }) => companyId) as [string, string];
    const api = await deployment.startApi();
    const worker = await deployment.startWorker();
    await deployment.onboard(first);
    expect(await deployment.runEnd(first)).toMatchObject({ status: 'succeeded' });

    await stopRedis();
    await worker.waitForOutput(/to Redis is lost/);
    await deployment.onboard(second);
    await startRedis();
    expect(await deployment.runEnd(second)).toMatchObject({ status: 'succeeded' });
    await worker.waitForOutput(/Redis is back/);
    await api.waitForOutput(/Redis is back/);
    for (const { stdout, stderr } of [api, worker]) {
      const log = (stdout + stderr).split('\n');
      expect(log.filter((line) => line.includes('is lost'))).toHaveLength(1);
      expect(log.filter((line) => line.includes('Redis is back'))).toHaveLength(1);
      expect(log.filter((line) => line.includes('ECONNREFUSED')).length).toBeLessThan(5);
    }
    for (const muster of [worker, api]) {
      muster.kill('SIGTERM');
      expect(await muster.exit).toEqual({ code: 0, signal: null });
    }
  });

  async function startRedis(): Promise<void> {
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
    redis = spawn(REDIS_SERVER, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    redis.stdout?.on('data', (text) => (output += String(text)));
    await waitFor(() => output.includes('Ready to accept connections'), { what: 'redis-server' });
  }

  async function stopRedis(): Promise<void> {
    if (!redis) return;
    const ended = once(redis, 'exit');
    redis.kill('SIGKILL');
    redis = undefined;
    await ended;
  }
});
