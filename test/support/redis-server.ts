import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { anyPort } from './port.js';
import { waitFor } from './wait-for.js';

/** Starts the server, says its process id, and ends it with standard input: not even a killed test run leaves it behind. */
const GUARDED = '"$@" </dev/null >/dev/null 2>&1 & echo $!; cat >/dev/null; kill -9 $!; wait';

/** Another one to try: `REDIS_SERVER=valkey-server npm run test:machines`. */
const PROGRAM = process.env.REDIS_SERVER ?? 'redis-server';

/** A Redis of a test's own, on a port that it keeps when it is started again. Its data is in memory only. */
export class RedisServer {
  readonly port = anyPort();
  readonly #args: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), 'muster-redis-'));
  #shell: ChildProcess | undefined;
  #pid = 0;

  private constructor(args: readonly string[]) {
    this.#args = args;
  }

  /** `args` come behind those that every server here has. */
  static async start(...args: string[]): Promise<RedisServer> {
    const server = new RedisServer(args);
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#pid;
  }

  /** Resolves when it answers, be it with a refusal. */
  async start(): Promise<void> {
    const file = join(this.#folder, 'redis.conf'); // which a Sentinel writes to
    const lines = [`port ${this.port}`, 'bind 127.0.0.1', `dir ${this.#folder}`];
    writeFileSync(file, `${lines.join('\n')}\n`);
    const isSentinel = this.#args.includes('--sentinel');
    const command = [PROGRAM, file, ...(isSentinel ? [] : ['--save', '', '--appendonly', 'no']), ...this.#args];
    const shell = spawn('/bin/sh', ['-c', GUARDED, 'sh', ...command], { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
    const [line] = (await once(shell.stdout, 'data')) as [Buffer];
    this.#shell = shell;
    this.#pid = Number(String(line));
    await waitFor(() => this.#answers());
  }

  kill(signal: NodeJS.Signals): void {
    process.kill(this.#pid, signal);
  }

  /** Ends it as a loss of power would. May be called twice. */
  async stop(): Promise<void> {
    const shell = this.#shell;
    this.#shell = undefined;
    if (!shell) return;
    const exited = once(shell, 'exit');
    shell.stdin!.end();
    await exited;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** One command by a connection of its own. */
  async command(...args: [string, ...string[]]): Promise<unknown> {
    return this.as({}, (redis) => redis.call(...args));
  }

  async as<T>(account: { username?: string; password?: string }, work: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(this.port, '127.0.0.1', { ...account, enableReadyCheck: false, retryStrategy: () => null });
    redis.on('error', () => {});
    return work(redis).finally(() => redis.disconnect());
  }

  #answers(): Promise<boolean> {
    return this.as({}, (redis) =>
      redis.ping().then(
        () => true,
        (error: Error) => error.name === 'ReplyError',
      ),
    );
  }
}
