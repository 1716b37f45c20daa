import type { Command } from 'commander';
import pRetry from 'p-retry';
import { loadConfig } from '../../config/config.js';
import { isMusterError } from '../../core/errors.js';
import type { Logger } from '../../observability/logger.js';

interface MigrateOptions {
  readonly wait?: boolean;
  readonly json?: boolean;
  readonly grantRuntime?: string;
  readonly grant?: string;
  readonly grantWarehouse?: string;
}

/** Milliseconds until a database that cannot be reached is tried again. */
const WAIT_MS = 2_000;
/** Tries that take about half a minute. */
const TRIES_A_WARNING = 15;

export function registerMigrate(program: Command): void {
  program
    .command('migrate')
    .description('apply pending migrations (up, api and worker do so themselves)')
    .option(
      '--grant-runtime <role>',
      'then grant a role the rights that api and workers need, so that they need not own the database',
    )
    .option('--grant <role>', 'then let a role read the schemas mirror and warehouse')
    .option('--grant-warehouse <role>', 'then let a role read the schema warehouse, without the records as they were sent')
    .option(
      '--wait',
      'while the database cannot be reached or used, wait for it, however long; a migration that fails ends the command',
    )
    .option('--json', 'print one JSON object a line')
    .action(async ({ wait, json, grantRuntime: runtime, grant: reader, grantWarehouse: warehouseReader }: MigrateOptions) => {
      const config = loadConfig(process.env);
      // maintenance.js loads most of Muster, so a command imports it only when it is called.
      const { applyMigrations } = await import('../../maintenance.js');
      const { createLogger } = await import('../../observability/logger.js');
      const logger = createLogger({ level: config.logLevel, format: config.logFormat });
      const migrate = () => applyMigrations(config, logger, { runtime, reader, warehouseReader });
      const { applied } = await (wait ? untilReached(migrate, logger) : migrate());
      if (json) for (const migration of applied) console.log(JSON.stringify({ migration }));
      else
        console.log(
          applied.length === 0 ? 'The database is up to date.' : `Applied:\n${applied.map((name) => `  ${name}`).join('\n')}`,
        );
      for (const [granted, may] of [
        [runtime, 'run api and workers'],
        [reader, 'read schemas mirror and warehouse'],
        [warehouseReader, 'read schema warehouse'],
      ])
        if (granted !== undefined) console.log(json ? JSON.stringify({ granted }) : `${granted} may ${may}.`);
    });
}

/**
 * Repeats the work while the database cannot be reached, goes away, or can do no work, as with a full disk: each of its transactions is harmless when it is
 * repeated.
 */
async function untilReached<T>(work: () => Promise<T>, logger: Logger): Promise<T> {
  const { explainDatabaseError } = await import('../../db/connection/sql-state.js');
  const isOverSoon = (error: unknown) => {
    const explained = explainDatabaseError(error);
    return isMusterError(explained) && explained.retryable;
  };
  return pRetry(work, {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: WAIT_MS,
    factor: 1,
    shouldRetry: ({ error }) => isOverSoon(error),
    onFailedAttempt: ({ error, attemptNumber }) => {
      if (isOverSoon(error) && attemptNumber % TRIES_A_WARNING === 1) logger.warn(`waiting for the database: ${error.message}`);
    },
  });
}
