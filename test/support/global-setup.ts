import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { pino } from 'pino';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/db/schema/migrate.js';
import { startEmbeddedServer } from '../../src/embedded/embedded-server.js';
import { PostgresServer } from './postgres-server.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's URL, and the migrated database that every test database is a clone of. */
    postgres: { url: string; template: string };
    redis: string | undefined;
    /** A folder with a file for each command that a process of its own has run, in whichever of vitest's workers. */
    startedCommands: string;
  }
}

type Cleanup = () => Promise<unknown>;

/**
 * Once a run: one PostgreSQL with one migrated template, and one Redis where there is a redis-server. The PostgreSQL is the embedded one;
 * with `TEST_POSTGRES=stock` the one that the machine's packages installed; with `TEST_DATABASE_URL` the server of that address.
 */
export default async function setup(project: TestProject): Promise<Cleanup | undefined> {
  // vitest calls this for each project of a configuration, too; they have what the root provides.
  if (!project.isRootProject()) return undefined;
  const cleanups: Cleanup[] = [];
  const cleanUp = async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  };
  try {
    const url = process.env.TEST_DATABASE_URL ?? (await startServer(await folderOfData(project), cleanups));
    project.provide('postgres', { url, template: await makeTemplate(url, cleanups) });
    project.provide('redis', process.env.TEST_REDIS_URL ?? (await startRedis(cleanups)));
    project.provide('startedCommands', await temporaryFolder(tmpdir(), 'muster-commands-', cleanups));
  } catch (error) {
    await cleanUp();
    throw error;
  }
  return cleanUp;
}

/** Nothing here need survive a power cut. */
const UNSAFE = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };

const MEMORY = '/dev/shm';
/** More than the databases of `npm test` and their journal take. Without it the tests would end for want of memory, which is worse than slow ones. */
const MEMORY_BYTES = 4 * 2 ** 30;

/**
 * Memory, where a configuration asks for it with `TEST_DATA: 'memory'` and the machine has enough: to make the files of a database takes three times
 * as much processor time on a disk. Otherwise the system's folder for temporary files.
 */
async function folderOfData(project: TestProject): Promise<string> {
  // vitest leaves `env` undefined, against its type, where a configuration has none.
  const env: Partial<Record<string, string>> | undefined = project.config.env;
  if (env?.['TEST_DATA'] !== 'memory') return tmpdir();
  const free = await statfs(MEMORY).then(
    ({ bavail, bsize }) => Math.min(bavail * bsize, freemem()),
    () => 0,
  );
  return free >= MEMORY_BYTES ? MEMORY : tmpdir();
}

async function startServer(folder: string, cleanups: Cleanup[]): Promise<string> {
  if (process.env.TEST_POSTGRES === 'stock') {
    const stock = await PostgresServer.start({ settings: { ...UNSAFE, max_connections: '200' }, folder });
    cleanups.push(() => stock.remove());
    return stock.url;
  }
  const home = await temporaryFolder(folder, 'muster-test-', cleanups);
  const server = await startEmbeddedServer({ home, logger: pino({ level: 'silent' }) });
  cleanups.push(() => server.stop());
  await asAdmin(server.url, async (admin) => {
    for (const [setting, value] of Object.entries(UNSAFE)) await admin.query(`ALTER SYSTEM SET ${setting} = ${value}`);
    await admin.query('SELECT pg_reload_conf()');
  });
  return server.url;
}

async function temporaryFolder(parent: string, prefix: string, cleanups: Cleanup[]): Promise<string> {
  const folder = await mkdtemp(join(parent, prefix));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function makeTemplate(url: string, cleanups: Cleanup[]): Promise<string> {
  const template = `muster_template_${randomBytes(6).toString('hex')}`;
  await asAdmin(url, (admin) => admin.query(`CREATE DATABASE ${template}`));
  cleanups.push(() => asAdmin(url, (admin) => admin.query(`DROP DATABASE ${template} WITH (FORCE)`)));
  const target = new URL(url);
  target.pathname = template;
  await migrate(target.href, pino({ level: 'silent' }));
  return template;
}

async function asAdmin(url: string, work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const admin = new pg.Client(url);
  await admin.connect();
  await work(admin).finally(() => admin.end());
}

/** Ends with its standard input, so that not even a killed test run leaves it behind. */
const REDIS = 'command -v redis-server >/dev/null || exit 3; redis-server "$@" </dev/null & cat >/dev/null; kill $!; wait';

async function startRedis(cleanups: Cleanup[]): Promise<string | undefined> {
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
  const shell = spawn('/bin/sh', ['-c', REDIS, 'sh', ...args], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  const exited = new Promise<void>((resolve) => void shell.on('exit', () => resolve()));
  const missing = new Promise<'missing'>((resolve) => void shell.on('exit', (code) => code === 3 && resolve('missing')));
  const redis = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  const outcome = await Promise.race([missing, redis.ping()]).finally(() => redis.disconnect());
  if (outcome === 'missing') {
    if (process.env.CI) throw new Error('CI runs both halves of the suite: install redis-server, or set TEST_REDIS_URL');
    cleanups.push(async () =>
      console.warn(
        '\nThe Redis half of the suite did NOT run: there is no redis-server here.\n' +
          'Install it (apt install redis-server, brew install redis), or set TEST_REDIS_URL.\n',
      ),
    );
    return undefined;
  }
  cleanups.push(() => {
    shell.stdin.end();
    return exited;
  });
  return `redis://127.0.0.1:${port}`;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no port'))));
    });
  });
}
