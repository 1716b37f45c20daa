/**
 * Companies that all come due at once: how many refreshes a second one worker makes, and whether every token is refreshed
 * before it expires. The worker's own parts (sweeper, queue, keeper) in this process; PostgreSQL and the authorization
 * server in others. Once for each queue backend; that of Redis needs a `redis-server`, or REDIS_URL (whose keys it deletes).
 *
 *   npx tsx bench/token-refresh.ts [companies] [milliseconds that the authorization server takes]
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { systemClock } from '../src/core/clock.js';
import { Secret } from '../src/core/secret.js';
import { openDatabase } from '../src/db/database.js';
import { startEmbeddedServer } from '../src/db/embedded-server.js';
import { migrate } from '../src/db/migrate.js';
import { HttpClient } from '../src/http/http-client.js';
import { migrateQueue, postgresBackend, type QueueBackend, redisBackend } from '../src/jobs/queue-backend.js';
import { Sweeper } from '../src/jobs/sweeper.js';
import { TOKEN_CONCURRENCY, TokenQueue } from '../src/jobs/token-queue.js';
import { Cipher } from '../src/oauth/cipher.js';
import { Connections } from '../src/oauth/connections.js';
import { TokenKeeper } from '../src/oauth/keeper.js';
import { Keyring } from '../src/oauth/keyring.js';
import { TokenEndpoint } from '../src/oauth/token-endpoint.js';
import { Vault } from '../src/oauth/vault.js';
import { anyPort } from '../test/support/port.js';

/** Of a lifetime of 1,799 s the usual margin is a fifth: so long is a due token still good. */
const LEFT_SECONDS = 360;
const logger = pino({ level: 'silent' });

/** Ends with its standard input, however we end. */
const REDIS = 'command -v redis-server >/dev/null || exit 3; redis-server "$@" </dev/null & cat >/dev/null; kill $!; wait';

if (process.argv[2] === 'provider') serveTokens(Number(process.argv[3]));
else await main(Number(process.argv[2] ?? 10_000), Number(process.argv[3] ?? 50));

async function main(companies: number, latencyMs: number): Promise<void> {
  console.log(`${companies} companies due at once, ${latencyMs} ms an answer, ${TOKEN_CONCURRENCY} side by side, one worker`);
  const home = await mkdtemp(join(tmpdir(), 'muster-bench-'));
  const server = await startEmbeddedServer({ home, logger });
  const provider = fork(fileURLToPath(import.meta.url), ['provider', String(latencyMs)], { execArgv: ['--import', 'tsx'] });
  const [port] = (await once(provider, 'message')) as [number];
  let redis: Awaited<ReturnType<typeof openRedis>>;
  let ok = true;
  try {
    redis = await openRedis();
    await migrate(server.url, logger);
    await migrateQueue(server.url);
    const backends = [postgresBackend(server.url, logger), ...(redis ? [redisBackend(redis.url, logger)] : [])];
    for (const backend of backends) ok = (await measure(server.url, port, backend, companies)) && ok;
    if (!redis) console.log('redis     not measured: there is no redis-server; set REDIS_URL');
    ok = (await reused(provider)) === 0 && ok;
  } finally {
    redis?.stop();
    provider.kill();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
  if (!ok) process.exitCode = 1;
}

/** Prints the figures of one backend; false when a token expired before it was refreshed. */
async function measure(databaseUrl: string, port: number, backend: QueueBackend, companies: number): Promise<boolean> {
  const db = openDatabase({ url: databaseUrl, poolSize: 14 }); // as app.ts with 4 companies side by side
  const url = new URL(`http://127.0.0.1:${port}`);
  const http = new HttpClient();
  const settings = { baseUrl: url, authUrl: url, clientId: 'bench', clientSecret: new Secret('bench-secret'), redirectUri: url };
  const vault = new Vault(new Cipher(new Keyring([{ id: 'bench', key: new Secret(randomBytes(32).toString('base64')) }])));
  const endpoints = { test: new TokenEndpoint(http, settings, systemClock) };
  const parts = { db, vault, endpoints, clock: systemClock, logger, connections: new Connections(db, systemClock) };
  const keeper = new TokenKeeper(parts);
  await onboard(db, vault, companies);

  const queue = new TokenQueue(backend, keeper);
  const sweeper = new Sweeper(backend, [{ name: 'due-tokens', everyMs: 2_000, run: () => queue.enqueueDue() }], logger);
  const { rows } = await db.pool.query<{ now: Date }>('UPDATE muster.tokens SET refresh_at = now() RETURNING now()');
  const beganAt = rows[0]!.now;
  const cpu = process.cpuUsage();
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
  const { user, system } = process.cpuUsage(cpu);
  await sweeper.stop();
  await queue.stop();
  await keeper.settle();
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
  const rate = done.refreshed / outcome.last;
  console.log(
    `${backend.kind.padEnd(8)}  ${done.refreshed} refreshed in ${outcome.last.toFixed(1)} s: ${rate.toFixed(0)} a second, ` +
      `${(LEFT_SECONDS - outcome.last).toFixed(0)} s before they expire, ${outcome.late} too late; ` +
      `${((user + system) / 1000 / done.refreshed).toFixed(2)} ms of the worker's processor each`,
  );
  return outcome.late === 0 && done.refreshed === companies;
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

/** POST /auth/token with refresh tokens that are good once: `company/n` gives `company/n+1`. */
function serveTokens(latencyMs: number): void {
  const used = new Set<string>();
  let reuses = 0;
  const server = createServer({ keepAliveTimeout: 5_000 }, async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const token = new URLSearchParams(body).get('refresh_token') ?? '';
    const [company, serial] = token.split('/');
    if (used.has(token)) reuses += 1;
    used.add(token);
    await sleep(latencyMs);
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        access_token: randomBytes(300).toString('base64url'),
        expires_in: 1799,
        token_type: 'Bearer',
        refresh_token: `${company}/${Number(serial) + 1}`,
        company_id: company,
      }),
    );
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
  process.on('message', () => process.send?.(reuses));
  process.on('disconnect', () => process.exit());
}

/** How often a refresh token came twice. */
async function reused(provider: ChildProcess): Promise<number> {
  const answer = once(provider, 'message') as Promise<[number]>;
  provider.send('how often?');
  const [reuses] = await answer;
  console.log(`refresh tokens that were sent twice: ${reuses}`);
  return reuses;
}

async function openRedis(): Promise<{ url: string; stop(): void } | undefined> {
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
