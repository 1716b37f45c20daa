import type { Clock } from '../core/clock.js';
import { readWaitingJobs, type WaitingJobs } from '../db/schema/queue-tables.js';
import { QUEUES } from '../jobs/queue-backend.js';
import { lookIntoRedisQueues } from '../jobs/redis-queue.js';
import { type Check, counted, duration, type Finding, holding, NotLookedAt, ok, problem, size, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

/** `wrong`: REDIS_URL cannot be read. */
export type QueuePlace = { readonly redisUrl: string } | 'PostgreSQL' | 'wrong';

export interface QueueNeeds {
  readonly place: QueuePlace;
  readonly access: DatabaseAccess;
  readonly clock: Clock;
}

/** Workers do other jobs than runs within seconds: one that waits longer has no worker. A run may wait all night. */
const LONG_SECONDS = 300;

export function checkQueue({ place, access, clock }: QueueNeeds): Check {
  return { name: 'queue', look: () => (place === 'PostgreSQL' ? inPostgres(access, clock) : inRedis(place, clock)) };
}

async function inPostgres(access: DatabaseAccess, clock: Clock): Promise<Finding[]> {
  const queues = await access.read((db) => readWaitingJobs(db, QUEUES));
  if (!queues) return [ok('in PostgreSQL; its tables are made at the first start')];
  return [ok('in PostgreSQL'), ...jobs(queues, clock)];
}

async function inRedis(place: Exclude<QueuePlace, 'PostgreSQL'>, clock: Clock): Promise<Finding[]> {
  if (place === 'wrong') throw new NotLookedAt(warning('not looked at: REDIS_URL is wrong', 'Set it right, and look again.'));
  const { info, found } = await lookIntoRedisQueues(place.redisUrl);
  return [...server(info), ...jobs(found, clock)];
}

function server(info: ReadonlyMap<string, string>): Finding[] {
  const number = (name: string) => Number(info.get(name) ?? 0);
  const [name, version] = info.has('valkey_version')
    ? ['Valkey', info.get('valkey_version')]
    : ['Redis', info.get('redis_version')];
  const policy = info.get('maxmemory_policy');
  const [used, most] = [number('used_memory'), number('maxmemory')];
  const isUnsaved = info.get('rdb_last_bgsave_status') === 'err' || info.get('aof_last_write_status') === 'err';
  return holding(
    ok(`${name} ${version}, ${info.get('redis_mode') ?? info.get('server_mode') ?? 'standalone'}, answers`),
    policy !== undefined &&
      policy !== 'noeviction' &&
      warning(
        `it may evict the keys of the queue when its memory is full (maxmemory-policy ${policy})`,
        'Set maxmemory-policy to noeviction. What is lost comes back by itself from the database.',
      ),
    most > 0 && used > 0.9 * most && warning(`${size(used)} of its ${size(most)} of memory are in use`, 'Raise its maxmemory.'),
    isUnsaved && problem('it could not save to its disk', 'See its log; until it can, it may take no writes.'),
  );
}

function jobs(queues: readonly WaitingJobs[], clock: Clock): Finding[] {
  const waiting = queues.filter((queue) => queue.waiting > 0);
  if (waiting.length === 0) return [ok('no job waits')];
  return waiting.map(({ queue, waiting: count, oldestAt }) => {
    const seconds = oldestAt === null ? 0 : Math.max(0, (clock.now() - oldestAt) / 1_000);
    const found = `${queue}: ${counted(count, 'job')} waiting, the oldest for ${duration(seconds)}`;
    if (queue.startsWith('runs-') || seconds < LONG_SECONDS) return ok(found);
    return problem(found, 'See that a worker runs, and its log.');
  });
}
