import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { systemClock } from '../src/core/clock.js';
import { Secret } from '../src/core/secret.js';
import { openDatabase } from '../src/db/connection/database.js';
import { migrate } from '../src/db/schema/migrate.js';
import { startEmbeddedServer } from '../src/embedded/embedded-server.js';
import { HttpClient } from '../src/http/http-client.js';
import { TOKEN_CONCURRENCY, tokenQueue } from '../src/jobs/due-queues.js';
import { migrateQueue, postgresBackend } from '../src/jobs/postgres-queue.js';
import type { QueueBackend } from '../src/jobs/queue-backend.js';
import { redisBackend } from '../src/jobs/redis-queue.js';
import { Sweeper } from '../src/jobs/sweeper.js';
import { AccessTokenManager } from '../src/oauth/access-token-manager.js';
import { Cipher, Keyring } from '../src/oauth/cipher.js';
import { Connections } from '../src/oauth/connections.js';
import { TokenEndpoint } from '../src/oauth/token-endpoint.js';
import { UnsavedTokenPairs } from '../src/oauth/unsaved-token-pairs.js';
import { Vault } from '../src/oauth/vault.js';
import type { Measures, Scale } from './measures.js';
import { openRedis } from './redis.js';

/** Of a lifetime of 1,799 s the usual margin is a fifth: so long is a due token still good. */
const LEFT_SECONDS = 360;
/** What the authorization server takes for an answer. */
const ANSWER_MS = 50;
const logger = pino({ level: 'silent' });

/**
 * Companies that all come due at once: how many refreshes a second one worker makes. The worker's own parts (sweeper, queue, manager of access tokens) in
 * this process; PostgreSQL and the authorization server in others. For each queue backend in turn; that of Redis needs a
 * `redis-server`, or REDIS_URL (whose keys it deletes). Throws when a token expired before it was refreshed, or was sent twice.
 */
export async function measureTokens(measures: Measures, { rounds, dueCompanies }: Scale): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  const server = await startEmbeddedServer({ home, logger });
  const provider = fork(fileURLToPath(new URL('token-provider.ts', import.meta.url)), [String(ANSWER_MS)], {
    execArgv: ['--import', 'tsx'],
  });
  const [port] = (await once(provider, 'message')) as [number];
  let redis: Awaited<ReturnType<typeof openRedis>>;
  try {
    redis = await openRedis();
    await migrate(server.url, logger);
    await migrateQueue(server.url);
    for (let n = 0; n < rounds; n++) {
      const backends = {
        postgres: postgresBackend(server.url, logger),
        ...(redis && { redis: redisBackend(redis.url, logger) }),
      };
      for (const [kind, backend] of Object.entries(backends)) {
        const rate = await refreshesPerSecond(server.url, port, backend, dueCompanies);
        measures.note(`token refreshes a second, ${ANSWER_MS} ms an answer, ${TOKEN_CONCURRENCY} side by side (${kind})`, rate);
      }
    }
    const reuses = await reused(provider);
    if (reuses > 0) throw new Error(`${reuses} refresh tokens were sent twice`);
  } finally {
    redis?.stop();
    provider.kill();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function refreshesPerSecond(databaseUrl: string, port: number, backend: QueueBackend, companies: number): Promise<number> {
  const db = openDatabase({ url: databaseUrl, poolSize: 14 }); // as app.ts with 4 companies side by side
  const url = new URL(`http://127.0.0.1:${port}`);
  const http = new HttpClient();
  const settings = { baseUrl: url, authUrl: url, clientId: 'bench', clientSecret: new Secret('bench-secret'), redirectUri: url };
  const vault = new Vault(new Cipher(new Keyring([{ id: 'bench', key: new Secret(randomBytes(32).toString('base64')) }])));
  const endpoints = { test: new TokenEndpoint(http, settings, systemClock) };
  const received = new UnsavedTokenPairs(logger);
  const deps = { db, vault, endpoints, received, clock: systemClock, logger, connections: new Connections(db, systemClock) };
  const tokens = new AccessTokenManager(deps);
  await onboard(db, vault, companies);

  const queue = tokenQueue(backend, tokens);
  const sweeper = new Sweeper(backend, [{ name: 'due-tokens', everyMs: 2_000, run: () => queue.enqueueDue() }], logger);
  const { rows } = await db.pool.query<{ now: Date }>('UPDATE muster.tokens SET refresh_at = now() RETURNING now()');
  const beganAt = rows[0]!.now;
  await queue.start();
  await sweeper.start();
  let done = { refreshed: 0, seconds: 0 };
  while (done.refreshed < companies && done.seconds < LEFT_SECONDS * 2) {
    await sleep(250);
    done = (
      await db.pool.query<typeof done>(
        `SELECT count(*) FILTER (WHERE refreshed_at > $1)::int AS refreshed, extract(epoch FROM clock_timestamp() - $1)::float8 AS seconds FROM muster.tokens`,
        [beganAt],
      )
    ).rows[0]!;
  }
  await sweeper.stop();
  await queue.stop();
  await tokens.settle();
  await backend.close();
  await http.close();

  const outcome = (
    await db.pool.query<{ late: number; last: number }>(
      `SELECT count(*) FILTER (WHERE refreshed_at <= $1 OR refreshed_at > $1 + $2 * interval '1 s')::int AS late,
              extract(epoch FROM max(refreshed_at) - $1)::float8 AS last FROM muster.tokens`,
      [beganAt, LEFT_SECONDS],
    )
  ).rows[0]!;
  await db.close();
  if (outcome.late > 0 || done.refreshed < companies)
    throw new Error(`${outcome.late} of ${companies} tokens expired before they were refreshed`);
  return companies / outcome.last;
}

async function onboard(db: ReturnType<typeof openDatabase>, vault: Vault, companies: number): Promise<void> {
  await db.pool.query('DELETE FROM muster.connections');
  for (let left = companies; left > 0; left -= 500) {
    const keys = Array.from({ length: Math.min(left, 500) }, () => ({ environment: 'test' as const, companyId: randomUUID() }));
    await db.prisma.connection.createMany({ data: keys });
    const soon = new Date(Date.now() + LEFT_SECONDS * 1_000);
    await db.prisma.token.createMany({
      data: keys.map((company) => {
        const pair = { accessToken: new Secret('old'), refreshToken: new Secret(`${company.companyId}/0`) };
        const { accessToken, refreshToken } = vault.seal(company, { ...pair, lifetimeSeconds: 0, refreshAfterSeconds: 0 });
        return { ...company, accessToken, refreshToken, expiresAt: soon, refreshedAt: new Date(0), refreshAt: soon };
      }),
    });
  }
  await db.pool.query('ANALYZE muster.connections, muster.tokens');
}

/** How often a refresh token came twice. */
async function reused(provider: ChildProcess): Promise<number> {
  const answer = once(provider, 'message') as Promise<[number]>;
  provider.send('how often?');
  const [reuses] = await answer;
  return reuses;
}
