import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { waitFor } from '../support/wait-for.js';
import { type ChaosWorld, shuffled, WORKERS } from './chaos-world.js';
import { fillDatabaseDisk } from './full-disk.js';

export interface ChaosStep {
  readonly name: string;
  /**
   * The answer to a refresh may be lost: then the token is sent again (decision 0047), and where the service had spent it the company must
   * authorize again.
   */
  readonly losesAnswers?: boolean;
  /** Hurts something, and mends it. */
  readonly take: (world: ChaosWorld) => Promise<void>;
}

/** A third of the time in which a refresh must be answered (TOKEN_DEADLINE_MS): an answer that came during a longer freeze could count as lost. */
const FROZEN_MS = 3_000;
/** Sessions that one step takes at once until PostgreSQL has none left. */
const SESSIONS_AT_ONCE = 20;

export const CHAOS_STEPS: readonly ChaosStep[] = [
  { name: 'kill -9 of a worker', losesAnswers: true, take: (world) => world.replace('first worker') },
  { name: 'kill -9 of the second worker', losesAnswers: true, take: (world) => world.replace('second worker') },
  { name: 'kill -9 of the API', losesAnswers: true, take: (world) => world.replace('api') },
  { name: 'kill -9 of both workers', losesAnswers: true, take: (world) => world.replace(...WORKERS) },
  {
    name: 'PostgreSQL crashes',
    take: async (world) => {
      await world.postgres.stop('immediate');
      await world.pause();
      await world.postgres.start();
    },
  },
  {
    name: 'kill -9 of Redis, which comes back empty',
    take: async (world) => {
      await world.redis.stop();
      await world.pause();
      await world.redis.start();
    },
  },
  {
    name: 'Redis is emptied',
    take: async ({ redis }) => {
      await redis.command('FLUSHALL');
    },
  },
  {
    name: 'the memory of Redis is full',
    take: (world) => brokenRedis(world, ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']),
  },
  {
    name: 'Redis is read-only',
    take: (world) => brokenRedis(world, ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']),
  },
  { name: 'the disk of PostgreSQL is full', take: fillDatabaseDisk },
  { name: 'PostgreSQL has no connection left', take: takeEveryConnection },
  {
    name: 'the service is killed',
    losesAnswers: true,
    take: async (world) => {
      await world.line.cut();
      await world.pause();
      await world.line.restore();
    },
  },
  { name: 'answers of the token endpoint are lost', losesAnswers: true, take: loseTokenAnswers },
  { name: 'a worker is frozen', take: freeze },
  { name: 'the clock of a worker goes ten minutes ahead and back', take: (world) => jump(world, 'SIGUSR2', 'SIGWINCH', 10) },
  { name: 'the clock of a worker goes ten minutes back and ahead', take: (world) => jump(world, 'SIGWINCH', 'SIGUSR2', -10) },
  { name: 'the keys of the queue are deleted one by one', take: deleteKeys },
];

type Command = [string, ...string[]];

async function brokenRedis(world: ChaosWorld, breaks: Command, mends: Command): Promise<void> {
  await world.redis.command(...breaks);
  await world.unready();
  await world.pause();
  await world.redis.command(...mends);
}

/** Every session of PostgreSQL is taken, those that Muster had among them. */
async function takeEveryConnection(world: ChaosWorld): Promise<void> {
  const taken: pg.Client[] = [];
  const take = async () => {
    const client = new pg.Client(world.postgres.url);
    client.on('error', () => {});
    await client.connect();
    taken.push(client);
  };
  try {
    await take();
    const seesNone = async () => {
      await taken[0]!.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> ''`,
      );
      const tries = await Promise.allSettled(Array.from({ length: SESSIONS_AT_ONCE }, take));
      return tries.every(({ status }) => status === 'rejected') && !(await world.isReady());
    };
    await waitFor(seesNone, { intervalMs: 50, what: 'PostgreSQL to have no connection left' });
    await world.pause();
  } finally {
    await Promise.all(taken.map((client) => client.end().catch(() => {})));
  }
}

/** One answer is lost of a request that the service never saw, and one of a request that it granted. */
async function loseTokenAnswers(world: ChaosWorld): Promise<void> {
  const { faults } = world.deployment.sandbox;
  for (const when of ['before', 'after'] as const) faults.add({ kind: 'drop', when }, { path: '/auth/token' });
  await world.expireTokens(world.someCompanies(4));
  await waitFor(() => faults.pending === 0, { what: 'two refreshes' });
}

/**
 * Its runs count as abandoned at once, and the other worker takes them over. It keeps its leases of tokens, which last for 30 seconds. Rows that a
 * transaction of the frozen worker has locked stay as they are.
 */
async function freeze(world: ChaosWorld): Promise<void> {
  const worker = world.process(WORKERS[world.random(WORKERS.length)]!);
  worker.kill('SIGSTOP');
  await world.query(
    `UPDATE muster.runs SET heartbeat_at = now() - interval '1 minute'
     WHERE id IN (SELECT id FROM muster.runs WHERE split_part(holder, '/', 2) = '${worker.pid}' FOR UPDATE SKIP LOCKED)`,
  );
  await sleep(FROZEN_MS);
  worker.kill('SIGCONT');
}

/** The process says on standard error that its clock has jumped. */
async function jump(world: ChaosWorld, there: NodeJS.Signals, back: NodeJS.Signals, minutes: number): Promise<void> {
  const worker = world.process(WORKERS[world.random(WORKERS.length)]!);
  const told = () => worker.stderr.match(/the clock is -?\d+ min ahead/g) ?? [];
  const jumps = told().length;
  worker.kill(there);
  await waitFor(() => told()[jumps] === `the clock is ${minutes} min ahead`, { what: 'the clock to jump' });
  await world.pause();
  worker.kill(back);
  await waitFor(() => told()[jumps + 1] === 'the clock is 0 min ahead', { what: 'the clock to jump back' });
}

async function deleteKeys({ redis, random }: ChaosWorld): Promise<void> {
  const keys = (await redis.command('KEYS', '*')) as string[];
  for (const key of shuffled(keys, random)) {
    await redis.command('DEL', key);
    await sleep(random(20));
  }
}
