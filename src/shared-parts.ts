import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Drain } from './api/plumbing/drain.js';
import type { ReadinessCheck } from './api/plumbing/readiness.js';
import { loadCatalogue } from './catalogue/load-catalogue.js';
import type { Config } from './config/config.js';
import { encryptionKeys } from './config/kept-secrets.js';
import { systemClock } from './core/clock.js';
import { type CompanyKey, ENVIRONMENTS, type Environment, keyText } from './core/company.js';
import { mapEnvironments, ofEnvironment } from './core/provider-settings.js';
import { type StopStack } from './core/service.js';
import { openCheckConnection, openDatabase } from './db/connection/database.js';
import { requireCompatible } from './db/schema/compatibility.js';
import { requireNoPendingMigrations } from './db/schema/migrate.js';
import { requireRoom } from './db/schema/require-room.js';
import { requireRuntimeRights } from './db/schema/runtime-rights.js';
import { claimInstallation, readStanding } from './db/tables/installation.js';
import { writeWarehouseSettings } from './db/tables/warehouse-settings.js';
import { requireWorker } from './db/tables/workers.js';
import { ApiClient } from './http/api-client.js';
import { databaseBudget } from './http/budget/budget-store.js';
import { SharedRequestBudget } from './http/budget/shared-request-budget.js';
import { HttpClient } from './http/http-client.js';
import { ResponseMemory } from './http/response-memory.js';
import { postgresBackend } from './jobs/postgres-queue.js';
import { redisBackend } from './jobs/redis-queue.js';
import { RunQueue } from './jobs/run-queue.js';
import { ensureMirrorTables, mirrorRelations } from './mirror/mirror-table.js';
import { Deliverer } from './notifications/deliverer.js';
import { Webhook } from './notifications/webhook.js';
import { AccessTokenManager } from './oauth/access-token-manager.js';
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
import { WorkCounts } from './observability/work-counts.js';
import { WorkMetrics } from './observability/work-metrics.js';
import { Suppressions } from './privacy/suppressions.js';
import { latenessOf } from './runs/lateness.js';
import { Runs } from './runs/runs.js';
import { ensureTypedViews } from './warehouse/typed-views.js';

/** The parts that every role needs. By themselves they only write down what they count. */
export async function openSharedParts(config: Config, url: string, logger: Logger, stack: StopStack) {
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
  for (const manager of [tokens, quietTokens]) {
    stack.push({ name: 'access tokens', stop: () => manager.settle() });
    // A refresh that begins later could outlast the process, and its token pair would be lost.
    stack.signal.addEventListener('abort', () => manager.stopRefreshing());
  }
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

/** A process has these parts, whatever its role. */
export type SharedParts = Awaited<ReturnType<typeof openSharedParts>>;
