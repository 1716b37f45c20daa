import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { connectionFailure } from '../core/connection-failure.js';
import { MusterError } from '../core/errors.js';
import type { Logger } from '../observability/logger.js';

const LIMIT_MS = 5_000;

/** BullMQ's scripts need this version. */
const LEAST_VERSION = [6, 2] as const;

/**
 * Does once what BullMQ does to its keys: a script writes hashes, lists, sorted sets and streams. A server that runs it can carry a queue.
 * A server that cannot write now, or forbids it to this user, answers with an error.
 */
const TRIAL = `
  redis.call('HSET', KEYS[1], 'a', '1') redis.call('DEL', KEYS[1])
  redis.call('RPUSH', KEYS[1], 'a') redis.call('DEL', KEYS[1])
  redis.call('ZADD', KEYS[1], 1, 'a') redis.call('DEL', KEYS[1])
  redis.call('XADD', KEYS[1], '*', 'a', '1') redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], '1') redis.call('DEL', KEYS[1])`;

/** Throws the driver's error if the server does not write as a queue needs. `prefix`: the prefix of BullMQ's keys. */
export async function tryRedis(redis: Redis, prefix: string): Promise<void> {
  await redis.eval(TRIAL, 1, `${prefix}:trial`);
}

/**
 * Checks at the start whether the server can carry a queue. BullMQ's own connections retry forever, which is right while Muster runs, but
 * at the start it would hide a wrong setting: the queue would just never move.
 *
 * Throws `queue_unavailable` if the server does not answer within five seconds or cannot write now, and `invalid_configuration` if no queue
 * can ever work there. Each message says why, and what to do.
 */
export async function requireRedis(url: string, prefix: string, logger: Logger): Promise<void> {
  await withRedis(url, (redis) => examine(redis, prefix, url, logger));
}

/** Returns INFO of a server that can carry a queue, and the result of `look`. Writes nothing. Throws as `requireRedis` does. */
export function lookIntoRedis<T>(
  url: string,
  look: (redis: Redis) => Promise<T>,
): Promise<{ readonly info: ReadonlyMap<string, string>; readonly found: T }> {
  return withRedis(url, async (redis) => {
    const info = await readServerInfo(redis, url);
    return { info, found: await look(redis) };
  });
}

async function withRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: LIMIT_MS,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false, // the check calls INFO, which the user may not be allowed to
  });
  // A rejected call says only that the connection is closed; the event has the cause.
  let cause: Error | undefined;
  redis.on('error', (error: Error) => (cause ??= error));
  const limit = new AbortController();
  try {
    const late = sleep(LIMIT_MS, undefined, { signal: limit.signal }).then(() => Promise.reject(new Error('timeout')));
    return await Promise.race([late, redis.connect().then(() => work(redis))]);
  } catch (error) {
    if (error instanceof MusterError) throw error;
    throw unusable(url, cause ?? (error as Error));
  } finally {
    limit.abort();
    redis.disconnect();
  }
}

/** Throws `invalid_configuration` if no queue can work on the server. */
async function readServerInfo(redis: Redis, url: string): Promise<ReadonlyMap<string, string>> {
  const text = await redis.info().catch((error: Error) => {
    if (!isReply(error, 'NOPERM', 'ERR')) throw error;
    throw refused(url, 'does not allow its user to call INFO, which BullMQ needs. Allow it: ACL SETUSER <user> +info');
  });
  const info = readInfo(text);
  const fault = faultOf(info);
  if (fault) throw refused(url, fault);
  return info;
}

async function examine(redis: Redis, prefix: string, url: string, logger: Logger): Promise<void> {
  const info = await readServerInfo(redis, url);
  await tryRedis(redis, prefix).catch((error: Error) => {
    // Inside a script a missing right has no error code of its own.
    if (!isReply(error, 'NOPERM') && !/user executing the script|ACL failure in script/i.test(error.message)) throw error;
    throw refused(
      url,
      `does not allow its user to write the keys of the queue by scripts. Allow it: ACL SETUSER <user> ~${prefix}:* +@all -@dangerous +info`,
    );
  });
  const policy = info.get('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction')
    logger.warn(
      { policy },
      `Redis at ${place(url)} may evict the queue's keys when its memory is full: set maxmemory-policy to noeviction. Lost jobs are added again from the database.`,
    );
}

/** The lines of INFO by their names. */
export function readInfo(text: string): ReadonlyMap<string, string> {
  const lines = text.split(/\r?\n/).map((line) => line.split(':'));
  return new Map(lines.map(([name, ...value]) => [name!, value.join(':')]));
}

/** Why no queue can work on such a server, and what to do; undefined if a queue can. */
export function faultOf(info: ReadonlyMap<string, string>): string | undefined {
  const mode = info.get('redis_mode') ?? info.get('server_mode');
  if (mode === 'sentinel')
    return 'is a Sentinel, which keeps no data, and Muster does not ask Sentinels for the primary. Set REDIS_URL to the primary, or to an address that follows it (a proxy, a service name)';
  if (mode === 'cluster' || info.get('cluster_enabled') === '1')
    return 'is a node of a cluster, which Muster does not support. Set REDIS_URL to a single Redis or Valkey without cluster-enabled: one is enough for any number of workers';
  if (info.get('role') === 'slave') {
    const primary = `${info.get('master_host') ?? '?'}:${info.get('master_port') ?? '?'}`;
    return `is a replica of ${primary} and accepts no writes. Set REDIS_URL to the primary`;
  }
  const version = info.get('redis_version') ?? '';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor < LEAST_VERSION[1]);
  return isOld
    ? `is version ${version || 'unknown'}; Muster needs Redis ${LEAST_VERSION.join('.')} or newer, or Valkey`
    : undefined;
}

function refused(url: string, fault: string): MusterError {
  return new MusterError(
    'invalid_configuration',
    `REDIS_URL: the server at ${place(url)} ${fault}; or leave REDIS_URL out to keep the queue in PostgreSQL.`,
  );
}

/** `queue_unavailable`, with the reason in words. */
export function unusable(url: string, cause: Error): MusterError {
  return new MusterError(
    'queue_unavailable',
    `Redis at ${place(url)} cannot be used: ${reasonOf(cause)}. Make sure that it runs and that REDIS_URL is right, ` +
      'or leave REDIS_URL out to keep the queue in PostgreSQL.',
    { cause },
  );
}

/** The first word of a refusal is its code (https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors). */
const REASONS: Readonly<Record<string, string>> = {
  WRONGPASS: 'it refuses the user or the password',
  NOAUTH: 'it refuses the user or the password',
  NOPERM: 'its user may not do what a queue needs',
  READONLY: 'it is a replica now, and accepts no writes',
  MASTERDOWN: 'it is a replica that has lost its primary',
  OOM: 'its memory is full, and it evicts nothing',
  MISCONF: 'it cannot save to its disk, and accepts no writes until it can',
  NOREPLICAS: 'it has too few replicas, and accepts no writes until it has enough',
  LOADING: 'it still loads its data',
  BUSY: 'a script of another client keeps it busy',
  CLUSTERDOWN: 'it is a node of a cluster that is down',
};

function reasonOf(error: Error): string {
  const known = Object.entries(REASONS).find(([code]) => isReply(error, code));
  if (known) return known[1];
  if (/^ERR (invalid password|AUTH)/.test(error.message)) return REASONS['WRONGPASS']!;
  if (error.name === 'MaxRetriesPerRequestError') return 'there is no connection to it';
  if (error.name === 'ParserError') return 'what listens there is not Redis';
  return connectionFailure(error);
}

/** Whether it is an error reply with one of these codes. An error inside a script has its code further back in the message. */
function isReply({ name, message }: Error, ...codes: string[]): boolean {
  return name === 'ReplyError' && codes.some((code) => new RegExp(`(^|[:-] ?)${code}\\b`).test(message));
}

/** Host and port, never the password. */
function place(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || 6379}`;
}
