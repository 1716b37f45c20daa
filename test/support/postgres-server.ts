import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { openDatabase } from '../../src/db/connection/database.js';
import { migrate } from '../../src/db/schema/migrate.js';
import { type Cluster, NAME, prepareCluster, type ServerPrograms } from '../../src/embedded/embedded-cluster.js';
import type { TestDatabase } from './database.js';
import { anyPort } from './port.js';
import { stockPrograms } from './stock-postgres.js';
import { waitFor } from './wait-for.js';

/** Ends the server by the signal that it reads; with standard input too: not even a killed test run leaves it behind. */
const GUARDED = '"$@" </dev/null >/dev/null 2>&1 & read -r signal || signal=QUIT; kill -"$signal" $!; wait';

/** `fast` ends every session and writes a checkpoint; `immediate` ends all processes at once, and the next start recovers. */
const SIGNALS = { fast: 'INT', immediate: 'QUIT' } as const;
export type StopMode = keyof typeof SIGNALS;

export interface PostgresServerOptions {
  /** The programs to run; without them those of the embedded server, or with `TEST_POSTGRES=stock` the machine's. */
  readonly programs?: ServerPrograms;
  /** Added to the server's own defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The folder in which its files are; the system's folder for temporary files unless said. */
  readonly folder?: string | undefined;
}

function usualPrograms(): ServerPrograms | undefined {
  return process.env.TEST_POSTGRES === 'stock' ? stockPrograms() : undefined;
}

/** A PostgreSQL of a test's own, on a port that it keeps when it is started again. */
export class PostgresServer {
  readonly #home: string;
  readonly #cluster: Cluster;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #programs: ServerPrograms | undefined;
  readonly #port = anyPort();
  #guard: ChildProcess | undefined;

  private constructor(
    home: string,
    cluster: Cluster,
    settings: Readonly<Record<string, string>>,
    programs: ServerPrograms | undefined,
  ) {
    this.#home = home;
    this.#cluster = cluster;
    this.#settings = settings;
    this.#programs = programs;
  }

  static async start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    const { programs = usualPrograms(), settings = {}, folder = tmpdir() } = options;
    const home = mkdtempSync(join(folder, 'muster-postgres-'));
    chmodSync(home, 0o755);
    const server = new PostgresServer(home, await prepareCluster(home, programs), settings, programs);
    await server.start();
    return server;
  }

  get url(): string {
    return `postgres://${NAME}:${this.#cluster.password}@127.0.0.1:${this.#port}/postgres`;
  }

  /** The folder of its Unix socket. */
  get socketFolder(): string {
    return this.#cluster.data;
  }

  /** A server that follows this one, which is stopped while it is copied. */
  async startStandby(): Promise<PostgresServer> {
    const home = mkdtempSync(join(tmpdir(), 'muster-postgres-'));
    chmodSync(home, 0o755);
    await this.stop('fast');
    execFileSync('cp', ['-a', `${this.#home}/.`, home]);
    const standby = new PostgresServer(home, await prepareCluster(home, this.#programs), this.#settings, this.#programs);
    const { data, password } = standby.#cluster;
    writeFileSync(join(data, 'standby.signal'), '');
    const primary = `host=127.0.0.1 port=${this.#port} user=${NAME} password=${password}`;
    appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${primary}'\n`);
    await this.start();
    await standby.start();
    return standby;
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    const { program, data, account } = this.#cluster;
    const settings = [
      'listen_addresses=127.0.0.1',
      `unix_socket_directories=${data}`,
      // The machine goes on when the server is ended, and has all that was written.
      'fsync=off',
      ...Object.entries(this.#settings).map(([name, value]) => `${name}=${value}`),
    ];
    const command = [program, '-D', data, '-p', String(this.#port), ...settings.flatMap((setting) => ['-c', setting])];
    const [file = '', ...args] = [...account.prefix, '/bin/sh', '-c', GUARDED, 'sh', ...command];
    this.#guard = spawn(file, args, { ...account.ids, cwd: '/', stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    await waitFor(() => this.answers(), { what: 'PostgreSQL to take connections' });
  }

  /** Resolves when it has ended. May be called twice. */
  async stop(mode: StopMode): Promise<void> {
    const guard = this.#guard;
    this.#guard = undefined;
    if (!guard) return;
    const exited = once(guard, 'exit');
    guard.stdin!.end(`${SIGNALS[mode]}\n`);
    await exited;
  }

  /** Stops all of its processes where they are, or lets them go on: the system still takes connections and bytes for them. */
  freeze(isFrozen: boolean): void {
    const [postmaster = ''] = readFileSync(join(this.#cluster.data, 'postmaster.pid'), 'utf8').split('\n');
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').split(' ').filter(Boolean);
    for (const pid of [postmaster, ...children]) process.kill(Number(pid), isFrozen ? 'SIGSTOP' : 'SIGCONT');
  }

  async remove(): Promise<void> {
    await this.stop('immediate');
    rmSync(this.#home, { recursive: true, force: true });
  }

  /** Its database, with every migration applied. To be closed before the server is removed. */
  async database(): Promise<TestDatabase> {
    await migrate(this.url, pino({ level: 'silent' }));
    const db = openDatabase({ url: this.url });
    return { url: this.url, db, close: () => db.close() };
  }

  /** Whether it takes a connection. */
  async answers(): Promise<boolean> {
    const client = new pg.Client(this.url);
    client.on('error', () => {});
    try {
      await client.connect();
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  }
}
