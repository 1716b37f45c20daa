import { setTimeout as sleep } from 'node:timers/promises';
import { readOperator } from './api/companies/connect-operator.js';
import { Authenticator } from './api/plumbing/authenticator.js';
import { ProbeServer } from './api/plumbing/probe-server.js';
import type { AdminServer } from './api/server.js';
import { signerOf } from './certificates/certificate.js';
import { certificateSweep } from './certificates/certificate-sweep.js';
import { manifestSigning } from './certificates/manifest-signing.js';
import type { Config } from './config/config.js';
import { adminToken, encryptionKeys } from './config/kept-secrets.js';
import { systemClock } from './core/clock.js';
import { calledOff, type StopStack } from './core/service.js';
import type { Database } from './db/connection/database.js';
import { privacySweep } from './erasure/privacy-sweep.js';
import { exportQueue, notificationQueue, tokenQueue } from './jobs/due-queues.js';
import { QueueGuard } from './jobs/queue-guard.js';
import { QueueLook } from './jobs/queue-look.js';
import { recordedSweeps } from './jobs/recorded-sweeps.js';
import { RunWorker } from './jobs/run-queue.js';
import { Substitute } from './jobs/substitute.js';
import { Sweeper } from './jobs/sweeper.js';
import { sweeps } from './jobs/sweeps.js';
import { VersionWatch } from './jobs/version-watch.js';
import { WorkerPresence } from './jobs/worker-presence.js';
import { databaseUrl, prepareDatabase, stopStack } from './maintenance.js';
import { Heartbeat } from './notifications/heartbeat.js';
import { Authorization } from './oauth/authorization.js';
import type { Connections } from './oauth/connections.js';
import type { Onboarding } from './oauth/onboarding.js';
import type { Logger } from './observability/logger.js';
import { startTraces } from './observability/start-traces.js';
import { issueSweep } from './runs/issues.js';
import { dueSyncs } from './runs/list-syncs.js';
import { nightlyVerifications } from './runs/nightly-verifications.js';
import { nightSweep } from './runs/nights.js';
import { followQuietHours } from './runs/quiet-hours.js';
import { RunExecutor } from './runs/run-executor.js';
import { RunLeases } from './runs/run-leases.js';
import type { Runs } from './runs/runs.js';
import { openSharedParts, type SharedParts } from './shared-parts.js';
import { skipUnchanged } from './unchanged/skip-unchanged.js';
import { WalkStore } from './walks/walk-store.js';
import { NightExports } from './warehouse/export/night-exports.js';
import { schemaSweep } from './warehouse/schema-sweep.js';

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
  /** After the drain of the API it ends refreshes and runs, then the rest in the reverse order of the start. May be called twice. */
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
  const shared = await openSharedParts(config, url, logger, stack);
  if (roles.has('worker')) await startWorker(config, shared, stack);
  const server = roles.has('api') ? await startApi(config, shared, stack) : undefined;
  if (config.probePort !== undefined) await stack.start(new ProbeServer({ ...config, ...shared, port: config.probePort }));
  const { db, runs, onboarding, connections, drain } = shared;
  return {
    db,
    runs,
    onboarding,
    connections,
    ...(config.databaseUrl === undefined && { embeddedUrl: new URL(url) }),
    ...(server && { url: server.url }),
    stop: async () => {
      if (server) await drain.stop();
      await stack.stop();
    },
  };
}

async function startWorker(config: Config, shared: SharedParts, stack: StopStack): Promise<void> {
  const { db, clock, logger, worker: name, quietTokens: tokens, backend, runQueue, deliverer } = shared;
  const { schedule, workerConcurrency: concurrency } = config;
  await followQuietHours(db, shared);
  const executor = new RunExecutor({
    ...shared,
    tokensOf: (company) => tokens.sourceFor(company),
    store: new WalkStore({ ...shared, comparisons: skipUnchanged }),
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
  const all = await recordedSweeps(db, clock, sweeps(work));
  const sweeper = new Sweeper(backend, all, logger);
  const heartbeat = config.heartbeatUrl && new Heartbeat({ ...config, db, url: config.heartbeatUrl, sweeps: all, logger });
  const guard = new QueueGuard({ backend, db, logger });
  const presence = new WorkerPresence(db, name, logger);
  const endOutdated = () => {
    shared.drain.skip(); // during a drain the worker would go on writing into a database that it does not understand
    process.kill(process.pid, 'SIGTERM');
  };
  const version = new VersionWatch({ db, logger, endProcess: endOutdated });
  // Runs and token jobs end together with the refreshes that they need. The stack waits for them, and reports their failures.
  const end = () => Promise.allSettled([worker.stop(), queues.dueTokens.endJobs()]);
  stack.signal.addEventListener('abort', end);
  // Presence comes first, so that a sweep that looks for living workers finds this one.
  for (const service of [presence, ...Object.values(queues), worker, sweeper, version, guard, heartbeat])
    if (service) await stack.start(service);
}

async function startApi(config: Config, shared: SharedParts, stack: StopStack): Promise<AdminServer> {
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
