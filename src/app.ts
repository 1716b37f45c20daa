import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { readOperator } from './api/companies/connect-operator.js';
import { Authenticator } from './api/plumbing/authenticator.js';
import { Drain } from './api/plumbing/drain.js';
import { ProbeServer } from './api/plumbing/probe-server.js';
import type { ReadinessCheck } from './api/plumbing/readiness.js';
import type { AdminServer } from './api/server.js';
import { loadCatalogue } from './catalogue/load-catalogue.js';
import { signerOf } from './certificates/certificate.js';
import { certificateSweep } from './certificates/certificate-sweep.js';
import { manifestSigning } from './certificates/manifest-signing.js';
import type { Config } from './config/config.js';
import { adminToken, encryptionKeys } from './config/kept-secrets.js';
import { systemClock } from './core/clock.js';
import { type CompanyKey, ENVIRONMENTS, type Environment, keyText } from './core/company.js';
import { mapEnvironments, ofEnvironment } from './core/provider-settings.js';
import { calledOff, type StopStack } from './core/service.js';
import { type Database, openCheckConnection, openDatabase } from './db/connection/database.js';
import { requireCompatible } from './db/schema/compatibility.js';
import { requireNoPendingMigrations } from './db/schema/migrate.js';
import { requireRoom } from './db/schema/require-room.js';
import { requireRuntimeRights } from './db/schema/runtime-rights.js';
import { claimInstallation, readStanding } from './db/tables/installation.js';
import { writeWarehouseSettings } from './db/tables/warehouse-settings.js';
import { requireWorker } from './db/tables/workers.js';
import { privacySweep } from './erasure/privacy-sweep.js';
import { ApiClient } from './http/api-client.js';
import { databaseBudget } from './http/budget/budget-store.js';
import { SharedRequestBudget } from './http/budget/shared-request-budget.js';
import { HttpClient } from './http/http-client.js';
import { ResponseMemory } from './http/response-memory.js';
import { exportQueue, notificationQueue, tokenQueue } from './jobs/due-queues.js';
import { postgresBackend } from './jobs/postgres-queue.js';
import { QueueGuard } from './jobs/queue-guard.js';
import { QueueLook } from './jobs/queue-look.js';
import { recordedSweeps } from './jobs/recorded-sweeps.js';
import { redisBackend } from './jobs/redis-queue.js';
import { RunQueue, RunWorker } from './jobs/run-queue.js';
import { Substitute } from './jobs/substitute.js';
import { Sweeper } from './jobs/sweeper.js';
import { sweeps } from './jobs/sweeps.js';
import { VersionWatch } from './jobs/version-watch.js';
import { WorkerPresence } from './jobs/worker-presence.js';
import { databaseUrl, prepareDatabase, stopStack } from './maintenance.js';
import { ensureMirrorTables, mirrorRelations } from './mirror/mirror-table.js';
import { Deliverer } from './notifications/deliverer.js';
import { Heartbeat } from './notifications/heartbeat.js';
import { Webhook } from './notifications/webhook.js';
import { AccessTokenManager } from './oauth/access-token-manager.js';
import { Authorization } from './oauth/authorization.js';
import { AuthorizationFlows } from './oauth/authorization-flows.js';
import { Cipher, Keyring } from './oauth/cipher.js';
import { ConnectLinks } from './oauth/connect-links.js';
import { Connections } from './oauth/connections.js';
import { notOurs } from './oauth/installation.js';
import { warnOfMissingKeys } from './oauth/key-rotation.js';
import { requireKnownKeys } from './oauth/known-keys.js';
import { Onboarding } from './oauth/onboarding.js';
import { TokenEndpoint } from './oauth/token-endpoint.js';
import { TokenJournal } from './oauth/token-journal.js';
import { UnsavedTokenPairs } from './oauth/unsaved-token-pairs.js';
import { Vault } from './oauth/vault.js';
import type { Logger } from './observability/logger.js';
import { startTraces } from './observability/start-traces.js';
import { WorkCounts } from './observability/work-counts.js';
import { WorkMetrics } from './observability/work-metrics.js';
import { Suppressions } from './privacy/suppressions.js';
import { issueSweep } from './runs/issues.js';
import { latenessOf } from './runs/lateness.js';
import { dueSyncs } from './runs/list-syncs.js';
import { nightlyVerifications } from './runs/nightly-verifications.js';
import { nightSweep } from './runs/nights.js';
import { followQuietHours } from './runs/quiet-hours.js';
import { RunExecutor } from './runs/run-executor.js';
import { RunLeases } from './runs/run-leases.js';
import { Runs } from './runs/runs.js';
import { skipUnchanged } from './unchanged/skip-unchanged.js';
import { WalkStore } from './walks/walk-store.js';
import { NightExports } from './warehouse/export/night-exports.js';
import { schemaSweep } from './warehouse/schema-sweep.js';
import { ensureTypedViews } from './warehouse/typed-views.js';

/** A process serves the admin API, works on the queue, or both. */
export type Role = 'api' | 'worker';

/** A started Muster. */
export interface App {
  readonly db: Database;
  readonly runs: Runs;
  readonly onboarding: Onboarding;
  readonly connections: Connections;
  /** Address of the embedded server, with the password; undefined with DATABASE_URL. */
  readonly embeddedUrl?: URL;
  /** Address of the admin API; undefined in a process that does not serve it. */
  readonly url?: string;
  /** Stops in the reverse order of the start. May be called twice. */
  stop(): Promise<void>;
}

/** Time for a cancelled start to notice it. */
const CALLED_OFF_MS = 3_000;

/**
 * Builds and starts all parts that the roles need. If a later part fails, the started ones are stopped again; likewise if
 * `signal` cancels the start, which then throws `stopping`.
 */
export async function startApp(config: Config, roles: ReadonlySet<Role>, logger: Logger, signal?: AbortSignal): Promise<App> {
  const stack = stopStack(logger);
  const starting = start(config, roles, logger, stack);
  try {
    return await (signal ? Promise.race([starting, calledOff(signal)]) : starting);
  } catch (error) {
    await stack.stop();
    await Promise.race([starting.catch(() => {}), sleep(CALLED_OFF_MS, undefined, { ref: false })]);
    await stack.stop(); // stops parts that started late
    throw error;
  }
}

async function start(config: Config, roles: ReadonlySet<Role>, logger: Logger, stack: StopStack): Promise<App> {
  await startTraces(config.traces, logger, stack);
  const url = await databaseUrl(config, logger, stack);
  await prepareDatabase(url, config, logger);
  const shared = await openShared(config, url, logger, stack);
  if (roles.has('worker')) await startWorker(config, shared, stack);
  const server = roles.has('api') ? await startApi(config, shared, stack) : undefined;
  if (config.probePort !== undefined) await stack.start(new ProbeServer({ ...config, ...shared, port: config.probePort }));
  if (server) stack.push(shared.drain); // last, so that a stop begins with it
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
  const { providers, schedule, quiet, refreshMarginSeconds } = config;
  const clock = systemClock;
  const catalogue = loadCatalogue(config.cataloguePath, config.privacyKey);
  const db = openDatabase({ url, poolSize: config.workerConcurrency + 6, stepPoolSize: config.workerConcurrency });
  stack.push({ name: 'database', stop: () => db.close() });
  await requireCompatible(db.pool);
  await claimInstallation(db, config.installation ?? null);
  const standing = await readStanding(db.prisma);
  if (standing !== 'ours') logger.error({ standing }, notOurs(standing).message);
  await ensureMirrorTables(db, catalogue);
  await ensureTypedViews(db, catalogue);
  await requireRuntimeRights(db.pool, mirrorRelations(catalogue));
  const staleAfterHours = latenessOf(config, catalogue);
  await writeWarehouseSettings(db, { staleAfterHours });

  const work = new WorkMetrics(ENVIRONMENTS.filter((environment) => providers[environment]));
  const http = new HttpClient({ silenceTimeoutMs: config.requestTimeoutSeconds * 1_000 }, config.proxies);
  stack.push({ name: 'HTTP client', stop: () => http.close() });
  const worker = `${hostname()}/${process.pid}/${randomBytes(4).toString('hex')}`;
  await stack.start(new WorkCounts(db, { work, process: worker, logger }));
  const apiClients = mapEnvironments(providers, (provider, environment) => {
    const store = databaseBudget(db, environment);
    const budget = new SharedRequestBudget({ store, clock, logger, environment, worker, limits: provider });
    stack.push({ name: budget.name, stop: () => budget.close() });
    return new ApiClient({ http, provider, clock, logger, budget, counts: work.requestsOf(environment) });
  });
  const endpoints = mapEnvironments(providers, (provider) => new TokenEndpoint(http, provider, clock));

  const keyring = new Keyring(await encryptionKeys(config));
  await requireKnownKeys(db, keyring);
  await warnOfMissingKeys(db, keyring, logger);
  const cipher = new Cipher(keyring);
  const vault = new Vault(cipher);
  const suppressions = new Suppressions(cipher);
  const journal = config.tokenJournal === undefined ? undefined : new TokenJournal(config.tokenJournal, { db, vault, logger });
  if (journal) await stack.start(journal);
  const connections = new Connections(db, clock, journal);
  const received = new UnsavedTokenPairs(logger);
  stack.push({ name: 'received pairs', stop: () => received.settle() });
  const oauth = { db, clock, logger, vault, connections, endpoints, received, journal, refreshMarginSeconds, work };
  // A person waits for the ones, at any hour; the others wait for the end of quiet hours.
  const [tokens, quietTokens] = [new AccessTokenManager(oauth), new AccessTokenManager({ ...oauth, quiet })];
  for (const manager of [tokens, quietTokens]) stack.push({ name: 'access tokens', stop: () => manager.settle() });
  const onboarding = new Onboarding(oauth);
  const links = new ConnectLinks({ ...oauth, keyring, publicUrl: config.publicUrl });
  const flows = new AuthorizationFlows(db, keyring, clock);

  const backend = config.redisUrl === undefined ? postgresBackend(url, logger) : redisBackend(config.redisUrl, logger);
  stack.push({ name: 'queue backend', stop: () => backend.close() });
  await backend.requireReachable();
  const runQueue = new RunQueue(backend, logger);
  stack.push({ name: 'run queue', stop: () => runQueue.close() });
  const runs = new Runs({ db, catalogue, schedule, quiet, clock, dispatcher: runQueue });
  const checks = openCheckConnection(url);
  stack.push({ name: 'readiness', stop: () => checks.end() });
  const drain = new Drain(clock, config.drainSeconds);
  const readiness: readonly ReadinessCheck[] = [
    drain.check,
    { name: 'database', check: () => requireRoom(checks) },
    { name: 'migrations', check: () => requireNoPendingMigrations(checks) },
    { name: 'version', check: () => requireCompatible(checks) },
    { name: 'queue', check: () => backend.ping() },
    { name: 'workers', check: () => requireWorker(db.prisma), isOptional: true },
  ];
  const webhook = config.webhook && new Webhook(config.webhook, clock, { proxies: config.proxies });
  if (webhook) stack.push({ name: 'webhook', stop: () => webhook.close() });
  const authorizeUrl = async (company: CompanyKey) => (await links.reauthorizationLinks([company])).get(keyText(company))?.url;
  const answers = new ResponseMemory(config.answerMemoryBytes);
  const deliverer = new Deliverer({ db, webhook, publicUrl: config.publicUrl, authorizeUrl, logger, work });
  return {
    ...oauth,
    worker,
    catalogue,
    staleAfterHours,
    suppressions,
    apiClients,
    quiet,
    quietTokens,
    onboarding,
    flows,
    links,
    backend,
    runQueue,
    runs,
    drain,
    readiness,
    deliverer,
    answers,
    tokensOf: (company: CompanyKey) => tokens.sourceFor(company),
    apiOf: (environment: Environment, base?: string) => ofEnvironment(apiClients, environment).at(base),
  };
}

type Shared = Awaited<ReturnType<typeof openShared>>;

async function startWorker(config: Config, shared: Shared, stack: StopStack): Promise<void> {
  const { db, clock, logger, worker: name, quietTokens: tokens, backend, runQueue, deliverer } = shared;
  const { schedule, workerConcurrency: concurrency } = config;
  await followQuietHours(db, shared);
  const executor = new RunExecutor({
    ...shared,
    tokensOf: (company) => tokens.sourceFor(company),
    store: new WalkStore(db, clock, skipUnchanged, shared.suppressions, shared.work),
    rowHashOf: skipUnchanged.rowHashOf,
  });
  const worker = new RunWorker({ ...shared, queue: runQueue, executor, leases: new RunLeases(db, name, logger), concurrency });
  const signer = await signerOf(config.signingKey, await encryptionKeys(config));
  const signManifest = manifestSigning(db, signer);
  const dueExports =
    config.exports && exportQueue(backend, new NightExports({ ...config, ...shared, exports: config.exports, signManifest }));
  const queues = { dueTokens: tokenQueue(backend, tokens), dueNotifications: notificationQueue(backend, deliverer), dueExports };
  const work = {
    ...config,
    ...shared,
    ...queues,
    ...dueSyncs({ ...shared, schedule }),
    sweepIssues: issueSweep({ ...config, ...shared, isWorker: true }),
    sweepNights: nightSweep({ ...shared, ...config }),
    startVerifications: nightlyVerifications({ ...shared, schedule, share: config.verifySharePerNight }),
    sweepSchema: schemaSweep({ ...shared, clock, logger }),
    signCertificates: certificateSweep({ db, logger, clock, signer }),
    sweepPrivacy: privacySweep(shared),
    retention: { runDays: config.runRetentionDays, auditDays: config.auditRetentionDays },
  };
  const all = recordedSweeps(db, clock, sweeps(work));
  const sweeper = new Sweeper(backend, all, logger);
  const heartbeat = config.heartbeatUrl && new Heartbeat({ ...config, db, url: config.heartbeatUrl, sweeps: all, logger });
  const guard = new QueueGuard({ backend, db, logger });
  const presence = new WorkerPresence(db, name, logger);
  const version = new VersionWatch({ db, logger, endProcess: () => process.kill(process.pid, 'SIGTERM') });
  // Presence comes first, so that a sweep that looks for living workers finds this one.
  for (const service of [presence, ...Object.values(queues), worker, sweeper, version, guard, heartbeat])
    if (service) await stack.start(service);
}

async function startApi(config: Config, shared: Shared, stack: StopStack): Promise<AdminServer> {
  const { db, clock, logger, links, backend } = shared;
  // Loaded only here, because a worker does not need these ten megabytes.
  const [{ createAdminServer }, { controlRoom }, { installationMetrics }] = await Promise.all([
    import('./api/server.js'),
    import('./dashboard/control-room.js'),
    import('./api/operation/installation-metrics.js'),
  ]);
  if (config.adminToken && config.adminToken.reveal().length < 16)
    logger.warn('MUSTER_ADMIN_TOKEN is short enough to be guessed: 16 characters or more are better');
  const authorization = new Authorization({ ...shared, providers: config.providers });
  stack.push({ name: 'authorization', stop: () => authorization.settle() });
  const queueLook = new QueueLook(backend, systemClock);
  stack.push(queueLook);
  const token = await adminToken(config, logger);
  const server = createAdminServer({
    ...config,
    ...shared,
    authenticator: new Authenticator({ db, clock, adminToken: token }),
    pages: controlRoom({ ...config, db, adminToken: token, settings: config.shown }),
    metrics: installationMetrics({ ...config, ...shared }),
    connectLinks: links,
    operator: readOperator(config.operator),
    queueLook,
    authorization,
  });
  await stack.start(new Substitute({ ...shared, sweepIssues: issueSweep({ ...config, ...shared, isWorker: false }) }));
  await stack.start(server);
  return server;
}
