import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AdminServer } from './api/server.js';
import { loadCatalogue } from './catalogue/load-catalogue.js';
import type { Config } from './config/config.js';
import { adminToken, encryptionKeys } from './config/kept-secrets.js';
import { systemClock } from './core/clock.js';
import { keyText } from './core/company.js';
import { MusterError } from './core/errors.js';
import { type ByEnvironment, ofEnvironment, type ProviderSettings } from './core/provider-settings.js';
import { StopStack } from './core/service.js';
import { type Database, openDatabase } from './db/database.js';
import { migrate, pendingMigrations } from './db/migrate.js';
import { startEmbeddedServer } from './embedded/embedded-server.js';
import { ApiClient } from './http/api-client.js';
import { HttpClient } from './http/http-client.js';
import { notificationQueue, tokenQueue } from './jobs/due-queues.js';
import { migrateQueue, postgresBackend } from './jobs/postgres-queue.js';
import { redisBackend } from './jobs/redis-queue.js';
import { RunQueue, RunWorker } from './jobs/run-queue.js';
import { Sweeper } from './jobs/sweeper.js';
import { sweeps } from './jobs/sweeps.js';
import { ensureMirrorTables } from './mirror/mirror-table.js';
import { Deliverer } from './notifications/deliverer.js';
import { Webhook } from './notifications/webhook.js';
import { AccessTokenManager } from './oauth/access-token-manager.js';
import { Authorization } from './oauth/authorization.js';
import { Cipher, Keyring } from './oauth/cipher.js';
import { ConnectLinkSigner } from './oauth/connect-link-signer.js';
import { ConnectLinks } from './oauth/connect-links.js';
import { Connections } from './oauth/connections.js';
import { type Rotation, rotateKeys, warnOfMissingKeys } from './oauth/key-rotation.js';
import { Onboarding } from './oauth/onboarding.js';
import { TokenEndpoint } from './oauth/token-endpoint.js';
import { Vault } from './oauth/vault.js';
import type { Logger } from './observability/logger.js';
import { registerSecret } from './observability/secret-registry.js';
import { nightlySyncs } from './runs/nightly-syncs.js';
import { RunExecutor } from './runs/run-executor.js';
import { RunLeases } from './runs/run-leases.js';
import { Runs } from './runs/runs.js';
import { skipUnchanged } from './unchanged/skip-unchanged.js';
import { WalkStore } from './walks/walk-store.js';

/** What a process does: answer the admin API, work on the queue, or both. */
export type Role = 'api' | 'worker';

/** A started Muster. */
export interface App {
  readonly db: Database;
  readonly runs: Runs;
  readonly onboarding: Onboarding;
  readonly connections: Connections;
  /** The embedded server's address, password and all; undefined with DATABASE_URL. */
  readonly embeddedUrl?: URL;
  /** Where the admin API listens; undefined in a process that does not serve it. */
  readonly url?: string;
  /** Stops in the reverse order of the start. May be called twice. */
  stop(): Promise<void>;
}

/** Brings the database and the queue's tables up to date, starting the embedded server where no other is configured. */
export async function applyMigrations(config: Config, logger: Logger): Promise<{ applied: string[] }> {
  const stack = stopStack(logger);
  try {
    return await prepareDatabase(await databaseUrl(config, logger, stack), config, logger);
  } finally {
    await stack.stop();
  }
}

/** Encrypts the stored tokens again, in the database that a running Muster may be using. */
export async function rotateStoredKeys(config: Config, logger: Logger): Promise<Rotation> {
  const stack = stopStack(logger);
  try {
    const db = openDatabase({ url: await databaseUrl(config, logger, stack), poolSize: 2 });
    stack.push({ name: 'database', stop: () => db.close() });
    return await rotateKeys(db, new Cipher(new Keyring(await encryptionKeys(config))));
  } finally {
    await stack.stop();
  }
}

/** How long a start that was called off may take to notice. */
const CALLED_OFF_MS = 3_000;

/**
 * Builds and starts every part that the roles need. What was started is stopped again when a later part fails, or when
 * `signal` calls the start off: then throws `stopping`.
 */
export async function startApp(config: Config, roles: ReadonlySet<Role>, logger: Logger, signal?: AbortSignal): Promise<App> {
  const stack = stopStack(logger);
  const starting = start(config, roles, logger, stack);
  try {
    return await (signal ? Promise.race([starting, calledOff(signal)]) : starting);
  } catch (error) {
    await stack.stop();
    await Promise.race([starting.catch(() => {}), sleep(CALLED_OFF_MS, undefined, { ref: false })]);
    await stack.stop(); // what came late
    throw error;
  }
}

function calledOff(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const callOff = () => reject(new MusterError('stopping', 'The start was called off.'));
    if (signal.aborted) callOff();
    else signal.addEventListener('abort', callOff, { once: true });
  });
}

async function start(config: Config, roles: ReadonlySet<Role>, logger: Logger, stack: StopStack): Promise<App> {
  const url = await databaseUrl(config, logger, stack);
  await prepareDatabase(url, config, logger);
  const shared = await openShared(config, url, logger, stack);
  if (roles.has('worker')) await startWorker(config, shared, stack);
  const server = roles.has('api') ? await startApi(config, shared, stack) : undefined;
  const { db, runs, onboarding, connections } = shared;
  return {
    db,
    runs,
    onboarding,
    connections,
    ...(config.databaseUrl === undefined && { embeddedUrl: new URL(url) }),
    ...(server && { url: server.url }),
    stop: () => stack.stop(),
  };
}

/** The parts that every role needs, and that do nothing by themselves. */
async function openShared(config: Config, url: string, logger: Logger, stack: StopStack) {
  const { providers, schedule, refreshMarginSeconds } = config;
  const clock = systemClock;
  const catalogue = loadCatalogue(config.cataloguePath);
  const db = openDatabase({ url, poolSize: config.workerConcurrency * 2 + 6 });
  stack.push({ name: 'database', stop: () => db.close() });
  await ensureMirrorTables(db, catalogue);

  const http = new HttpClient({ silenceTimeoutMs: config.requestTimeoutSeconds * 1_000 });
  stack.push({ name: 'HTTP client', stop: () => http.close() });
  const apiClients = mapProviders(providers, (provider) => new ApiClient({ http, provider, clock, logger }));
  const endpoints = mapProviders(providers, (provider) => new TokenEndpoint(http, provider, clock));

  const keyring = new Keyring(await encryptionKeys(config));
  await warnOfMissingKeys(db, keyring, logger);
  const vault = new Vault(new Cipher(keyring));
  const connections = new Connections(db, clock);
  const oauth = { db, clock, logger, vault, connections, endpoints, refreshMarginSeconds };
  const tokens = new AccessTokenManager(oauth);
  stack.push({ name: 'access tokens', stop: () => tokens.settle() });
  const onboarding = new Onboarding(oauth);
  const signer = new ConnectLinkSigner(keyring);
  const links = new ConnectLinks({ ...oauth, signer, publicUrl: config.publicUrl });

  const backend = config.redisUrl === undefined ? postgresBackend(url, logger) : redisBackend(config.redisUrl, logger);
  stack.push({ name: 'queue backend', stop: () => backend.close() });
  await backend.requireReachable();
  const runQueue = new RunQueue(backend, logger);
  stack.push({ name: 'run queue', stop: () => runQueue.close() });
  const runs = new Runs({ db, catalogue, schedule, clock, dispatcher: runQueue });
  return { ...oauth, catalogue, apiClients, tokens, onboarding, signer, links, backend, runQueue, runs };
}

type Shared = Awaited<ReturnType<typeof openShared>>;

async function startWorker(config: Config, shared: Shared, stack: StopStack): Promise<void> {
  const { db, clock, logger, apiClients, tokens, links, backend, runQueue, runs } = shared;
  const { publicUrl, schedule, changeRetentionDays, workerConcurrency: concurrency } = config;
  const leases = new RunLeases(db, `${hostname()}/${process.pid}/${randomBytes(4).toString('hex')}`, logger);
  const executor = new RunExecutor({
    ...shared,
    store: new WalkStore(db, clock, skipUnchanged),
    tokensOf: (company) => tokens.sourceFor(company),
    apiOf: (environment) => ofEnvironment(apiClients, environment),
  });
  const worker = new RunWorker({ ...shared, queue: runQueue, executor, leases, concurrency });
  const deliverer = new Deliverer({
    db,
    webhook: openWebhook(config, stack),
    publicUrl,
    authorizeUrl: async (company) => (await links.reauthorizationUrls([company])).get(keyText(company)),
    logger,
  });
  const dueTokens = tokenQueue(backend, tokens);
  const dueNotifications = notificationQueue(backend, deliverer);
  const startDueSyncs = nightlySyncs({ db, runs, schedule, logger });
  const swept = { db, startDueSyncs, runQueue, dueTokens, dueNotifications, deliverer, changeRetentionDays };
  const sweeper = new Sweeper(backend, sweeps(swept), logger);
  for (const service of [dueTokens, dueNotifications, worker, sweeper]) await stack.start(service);
}

async function startApi(config: Config, shared: Shared, stack: StopStack): Promise<AdminServer> {
  const { db, catalogue, logger, links, backend, runQueue } = shared;
  // Ten megabytes, which a worker does without.
  const [{ createAdminServer }, { createMetrics }] = await Promise.all([
    import('./api/server.js'),
    import('./observability/metrics.js'),
  ]);
  if (config.adminToken && config.adminToken.reveal().length < 16)
    logger.warn('MUSTER_ADMIN_TOKEN is short enough to be guessed: 16 characters or more are better');
  const authorization = new Authorization({ ...shared, providers: config.providers });
  stack.push({ name: 'authorization', stop: () => authorization.settle() });
  const server = createAdminServer({
    ...shared,
    host: config.host,
    port: config.port,
    adminToken: await adminToken(config),
    metrics: createMetrics({
      db,
      resources: catalogue.endpoints.map(({ resource }) => resource),
      waitingJobs: async () => ({ runs: await runQueue.waiting() }),
    }),
    connectLinks: links,
    authorization,
    readiness: [
      { name: 'database', check: () => db.pool.query('SELECT 1') },
      { name: 'migrations', check: () => requireNoPendingMigrations(db) },
      { name: 'queue', check: () => backend.ping() },
    ],
  });
  await stack.start(server);
  return server;
}

function stopStack(logger: Logger): StopStack {
  return new StopStack((error, name) => logger.error({ err: error }, `${name} did not stop cleanly`));
}

async function databaseUrl(config: Config, logger: Logger, stack: StopStack): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  const server = await startEmbeddedServer({ home: config.home, logger });
  stack.push({ name: 'embedded PostgreSQL', stop: () => server.stop() });
  return server.url;
}

async function prepareDatabase(url: string, config: Config, logger: Logger): Promise<{ applied: string[] }> {
  const result = await migrate(url, logger);
  if (config.redisUrl === undefined) await migrateQueue(url);
  return result;
}

async function requireNoPendingMigrations(db: Database): Promise<void> {
  const pending = await pendingMigrations(db.pool);
  if (pending.length > 0)
    throw new MusterError('migration_failed', `Migrations are pending: ${pending.join(', ')}. Run \`muster migrate\`.`);
}

function openWebhook({ webhook: settings }: Config, stack: StopStack): Webhook | undefined {
  if (!settings) return undefined;
  // Its address, too, may be all that is needed to write there.
  for (const value of [settings.secret.reveal(), settings.url.href]) registerSecret(value, { lasting: true });
  const webhook = new Webhook(settings, systemClock);
  stack.push({ name: 'webhook', stop: () => webhook.close() });
  return webhook;
}

/** One of something for the provider of each environment that is configured. */
function mapProviders<T>(providers: Config['providers'], make: (provider: ProviderSettings) => T): ByEnvironment<T> {
  return Object.fromEntries(Object.entries(providers).map(([environment, provider]) => [environment, make(provider)]));
}
