import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { anyPort } from '../test/support/port.js';

/** Ends with its standard input, however we end. */
const REDIS = 'command -v redis-server >/dev/null || exit 3; redis-server "$@" </dev/null & cat >/dev/null; kill $!; wait';

/** An empty Redis: REDIS_URL, or one of our own; undefined where there is no `redis-server`. */
export async function openRedis(): Promise<{ url: string; stop(): void } | undefined> {
  const given = process.env['REDIS_URL'];
  const port = anyPort();
  const url = given ?? `redis://127.0.0.1:${port}`;
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', ''];
  const server = given ? undefined : spawn('/bin/sh', ['-c', REDIS, 'sh', ...options], { stdio: ['pipe', 'ignore', 'ignore'] });
  const missing = server ? once(server, 'exit').then(() => true) : new Promise<never>(() => {});
  const redis = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on('error', () => {});
  const ready = redis.flushdb().then(() => false);
  const absent = await Promise.race([missing, ready]).finally(() => redis.disconnect());
  return absent ? undefined : { url, stop: () => void server?.stdin.end() };
}
