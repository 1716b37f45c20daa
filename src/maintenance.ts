import { loadCatalogue } from './catalogue/load-catalogue.js';
import type { Config } from './config/config.js';
import { encryptionKeys } from './config/kept-secrets.js';
import { systemClock } from './core/clock.js';
import { StopStack } from './core/service.js';
import { type Database, openDatabase } from './db/connection/database.js';
import { requireMusterDatabase } from './db/connection/muster-database.js';
import { withDatabaseErrors } from './db/connection/sql-state.js';
import { requireCompatible } from './db/schema/compatibility.js';
import { migrate } from './db/schema/migrate.js';
import { grantReading } from './db/schema/reader-rights.js';
import { grantRuntime } from './db/schema/runtime-rights.js';
import { startEmbeddedServer } from './embedded/embedded-server.js';
import { applySuppressions, copySuppressions, restoreSuppressions, type SuppressionCopy } from './erasure/suppression-copies.js';
import { migrateQueue } from './jobs/postgres-queue.js';
import { ensureMirrorTables } from './mirror/mirror-table.js';
import { Cipher, Keyring } from './oauth/cipher.js';
import { Connections } from './oauth/connections.js';
import { type Rotation, rotateKeys } from './oauth/key-rotation.js';
import { requireKnownKeys } from './oauth/known-keys.js';
import { type RestoredTokens, restoreTokens } from './oauth/restored-tokens.js';
import type { JournalEntry } from './oauth/token-journal.js';
import { Vault } from './oauth/vault.js';
import type { Logger } from './observability/logger.js';
import { Suppressions } from './privacy/suppressions.js';
import { ensureTypedViews, extendViews } from './warehouse/typed-views.js';

/**
 * Brings the database and the tables of queue and catalogue up to date, and starts the embedded server if no other is configured. Then
 * grants `runtime` the rights of api and workers, `reader` the rights of readers, and `warehouseReader` those on schema `warehouse` alone, if these roles are given.
 */
export async function applyMigrations(
  config: Config,
  logger: Logger,
  { runtime, reader, warehouseReader }: Partial<Record<'runtime' | 'reader' | 'warehouseReader', string | undefined>> = {},
): Promise<{ applied: string[] }> {
  const stack = stopStack(logger);
  try {
    const catalogue = loadCatalogue(config.cataloguePath);
    const url = await databaseUrl(config, logger, stack);
    const result = await prepareDatabase(url, config, logger);
    const db = openDatabase({ url, poolSize: 2 });
    stack.push({ name: 'database', stop: () => db.close() });
    await ensureMirrorTables(db, catalogue);
    await ensureTypedViews(db, catalogue);
    await extendViews(db, logger);
    if (runtime !== undefined) await grantRuntime(url, runtime);
    if (reader !== undefined) await grantReading(url, reader);
    if (warehouseReader !== undefined) await grantReading(url, warehouseReader, ['warehouse']);
    return result;
  } finally {
    await stack.stop();
  }
}

/** Encrypts the stored tokens again. A running Muster may use the database concurrently. */
export function rotateStoredKeys(config: Config, logger: Logger): Promise<Rotation> {
  return withKeyring(config, logger, (db, keyring) => rotateKeys(db, new Cipher(keyring)));
}

/** Gives companies their newest tokens from these journals. A running Muster may use the database concurrently. */
export function restoreStoredTokens(config: Config, logger: Logger, entries: readonly JournalEntry[]): Promise<RestoredTokens> {
  return withKeyring(config, logger, (db, keyring) => {
    const [vault, connections] = [new Vault(new Cipher(keyring)), new Connections(db, systemClock)];
    return restoreTokens({ db, vault, connections }, entries);
  });
}

/** Does work that needs the database and its encryption keys. Throws if the database knows another key by the same id. */
async function withKeyring<T>(config: Config, logger: Logger, work: (db: Database, keyring: Keyring) => Promise<T>): Promise<T> {
  const stack = stopStack(logger);
  try {
    const db = openDatabase({ url: await databaseUrl(config, logger, stack), poolSize: 2 });
    stack.push({ name: 'database', stop: () => db.close() });
    await withDatabaseErrors(requireMusterDatabase(db.pool));
    await requireCompatible(db.pool);
    const keyring = new Keyring(await encryptionKeys(config));
    await requireKnownKeys(db, keyring);
    return await work(db, keyring);
  } finally {
    await stack.stop();
  }
}

/** Work on all suppressions of a database. A running Muster may use it concurrently. */
export interface StoredSuppressions {
  readonly copy: () => Promise<SuppressionCopy>;
  readonly restore: (copy: unknown) => Promise<number>;
  readonly apply: () => Promise<number>;
}

export async function withStoredSuppressions(
  config: Config,
  logger: Logger,
  work: (suppressions: StoredSuppressions) => Promise<void>,
): Promise<void> {
  const stack = stopStack(logger);
  try {
    const catalogue = loadCatalogue(config.cataloguePath);
    const db = openDatabase({ url: await databaseUrl(config, logger, stack), poolSize: 2 });
    stack.push({ name: 'database', stop: () => db.close() });
    await withDatabaseErrors(requireMusterDatabase(db.pool));
    await requireCompatible(db.pool);
    const cipher = new Cipher(new Keyring(await encryptionKeys(config)));
    await work({
      copy: () => copySuppressions(db),
      restore: (copy) => restoreSuppressions(db, cipher, copy),
      apply: () => applySuppressions(db, { catalogue, suppressions: new Suppressions(cipher) }),
    });
  } finally {
    await stack.stop();
  }
}

export function stopStack(logger: Logger): StopStack {
  return new StopStack(
    (error, name) => logger.error({ err: error }, `${name} did not stop cleanly`),
    (name) => logger.warn(`${name} has not stopped yet`),
  );
}

/** Address of the configured database, or of the embedded server, which is started. */
export async function databaseUrl(config: Config, logger: Logger, stack: StopStack): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  const server = await startEmbeddedServer({ home: config.home, logger });
  stack.push({ name: 'embedded PostgreSQL', stop: () => server.stop() });
  return server.url;
}

export async function prepareDatabase(url: string, config: Config, logger: Logger): Promise<{ applied: string[] }> {
  const result = await migrate(url, logger);
  if (config.redisUrl === undefined) await migrateQueue(url);
  return result;
}
