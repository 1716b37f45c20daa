import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, realpathSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from 'pino';
import { isProcessAlive } from '../core/home.js';
import { sqlState } from '../db/connection/sql-state.js';
import { embeddedDatabaseFailed } from './embedded-account.js';
import { type Cluster, NAME, prepareCluster, readPassword } from './embedded-cluster.js';
import { type Guard, isGuarded, isInUse, joinUsers, type PipeEnd, startGuarded } from './embedded-guard.js';

export interface EmbeddedServer {
  /** Address of the database `muster`, with the password. */
  readonly url: string;
  /** Stops using the server, and waits for its end if no other process uses it. May be called twice. */
  stop(): Promise<void>;
}

/** Crash recovery after a power cut may take this long. */
const START_TIMEOUT_MS = 60_000;

/** A little longer than the guard needs for its last resort. */
const STOP_TIMEOUT_MS = 26_000;

/** Another program may take the free port before the server does. */
const MAX_LAUNCHES = 3;

const MAX_LOG_BYTES = 5_000_000;

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  log_checkpoints: 'off',
  // The log is a plain file and must hold neither statements nor rows.
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
};

/**
 * A real PostgreSQL below `home`/postgres, on a free port of the loopback, for as long as a process uses it.
 *
 * The first process starts the server; every further process with the same home joins it. The server ends when the last one stops
 * or dies, by kill -9, too (see embedded-guard.ts). A command that started it therefore never takes the database away from an `up` that
 * joined later. Data and password stay.
 *
 * Throws `embedded_database_failed` with what to do.
 */
export async function startEmbeddedServer({ home, logger }: { home: string; logger: Logger }): Promise<EmbeddedServer> {
  const cluster = await prepareCluster(resolve(home));
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (let launches = 0; launches < MAX_LAUNCHES && performance.now() < deadline; await sleep(50)) {
    // The lock file must be read before the pipe is opened: a server named there that has no guard afterwards had none in between.
    const found = readPostmaster(cluster.data);
    let pipeEnd = joinUsers(cluster.pipe);
    let guard: Guard | undefined;
    if (pipeEnd === undefined) {
      if (found && !clearAway(found, cluster.data)) continue;
      launches += 1;
      guard = await launch(cluster);
      pipeEnd = guard.pipeEnd;
    }
    const server = await whenReady(cluster, pipeEnd, deadline);
    if (server) {
      let stopped: Promise<void> | undefined;
      logger.info(
        { port: server.port, data: cluster.data },
        guard ? 'embedded PostgreSQL started' : 'embedded PostgreSQL joined',
      );
      return { url: urlOf(cluster, server.port, NAME), stop: () => (stopped ??= release(cluster, pipeEnd, server.pid, guard)) };
    }
    closeSync(pipeEnd);
  }
  throw embeddedDatabaseFailed(
    `The embedded PostgreSQL did not start: ${lastLines(cluster.log)} (log: ${cluster.log}). Mend that, or set DATABASE_URL.`,
  );
}

/**
 * Address of the server below `home`/postgres, with the password; undefined if none runs. Starts and makes nothing. Throws
 * `embedded_database_failed` if its password cannot be read.
 */
export function runningEmbeddedServer(home: string): string | undefined {
  const root = join(resolve(home), 'postgres');
  const data = join(existsSync(root) ? realpathSync(root) : root, 'data');
  const found = readPostmaster(data);
  if (!found?.ready || !isProcessAlive(found.pid) || !commandOf(found.pid).includes(data)) return undefined;
  return urlOf({ password: readPassword(join(root, 'password')) }, found.port, NAME);
}

async function launch(cluster: Cluster): Promise<Guard> {
  const settings = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const command = [cluster.program, '-D', cluster.data, '-p', String(await freePort()), ...settings];
  if (existsSync(cluster.log) && statSync(cluster.log).size > MAX_LOG_BYTES) truncateSync(cluster.log);
  const log = openSync(cluster.log, 'a', 0o600);
  try {
    return startGuarded(command, cluster.pipe, log, cluster.account);
  } finally {
    closeSync(log);
  }
}

/** Undefined if the server did not start, or if its guard had already seen the last user leave. */
async function whenReady(cluster: Cluster, pipeEnd: PipeEnd, deadline: number): Promise<Postmaster | undefined> {
  while (performance.now() < deadline) {
    const server = readPostmaster(cluster.data);
    // The connection also proves that this is our server, because no other one knows the password.
    const connected = server?.ready === true && (await provideDatabase(cluster, server.port));
    if (!isGuarded(pipeEnd)) return undefined;
    if (connected) return server;
    await sleep(25);
  }
  return undefined;
}

async function provideDatabase(cluster: Cluster, port: number): Promise<boolean> {
  const client = new pg.Client({ connectionString: urlOf(cluster, port, 'postgres'), connectionTimeoutMillis: 3_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rowCount } = await client.query(`SELECT FROM pg_database WHERE datname = '${NAME}'`);
    if (!rowCount) await client.query(`CREATE DATABASE ${NAME}`);
    return true;
  } catch (error) {
    return ['42P04', '23505'].includes(sqlState(error) ?? ''); // another process has just made it
  } finally {
    await client.end().catch(() => {});
  }
}

async function release(cluster: Cluster, pipeEnd: PipeEnd, pid: number, guard: Guard | undefined): Promise<void> {
  closeSync(pipeEnd);
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (performance.now() < deadline) {
    // This is checked repeatedly, because another process may join before the guard notices that this one left.
    if (isInUse(cluster.pipe)) return;
    if (!isProcessAlive(pid)) return guard?.exited();
    await sleep(20);
  }
}

type Postmaster = NonNullable<ReturnType<typeof readPostmaster>>;

/** Reads the server's own lock file, which remains if the server is killed. */
function readPostmaster(data: string) {
  const text = readLockFile(data);
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' };
}

function readLockFile(data: string): string | undefined {
  try {
    return readFileSync(lockFile(data), 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Prepares for a new server if there is no guard; false means not yet. A server whose guard was killed is stopped, because no guard would end it.
 * A lock file whose process number now belongs to another program would keep the server from starting, because the server only checks
 * whether such a process exists. The number is therefore replaced by one that no process has. Deleting the file would be worse: the server
 * uses it to find out whether children of the old server still work on the data.
 */
function clearAway({ pid }: Postmaster, data: string): boolean {
  if (!isProcessAlive(pid)) return true;
  if (commandOf(pid).includes(data)) {
    process.kill(pid, 'SIGINT');
    return false;
  }
  const text = readLockFile(data); // a server that has just ended deletes it
  if (text?.startsWith(`${pid}\n`)) writeFileSync(lockFile(data), text.replace(/^\d+/, '2147483646'));
  return true;
}

function commandOf(pid: number): string {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return ''; // it has just ended
  }
}

const lockFile = (data: string): string => join(data, 'postmaster.pid');

function urlOf({ password }: Pick<Cluster, 'password'>, port: number, database: string): string {
  return `postgres://${NAME}:${password}@127.0.0.1:${port}/${database}`;
}

function lastLines(log: string): string {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  return lines.slice(-3).join(' ') || 'it logged nothing';
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
