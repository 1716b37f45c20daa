import type { Command } from 'commander';
import { loadConfig } from '../../config/config.js';

interface MigrateOptions {
  readonly json?: boolean;
  readonly grantRuntime?: string;
  readonly grant?: string;
  readonly grantWarehouse?: string;
}

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
    .option('--json', 'print one JSON object a line')
    .action(async ({ json, grantRuntime: runtime, grant: reader, grantWarehouse: warehouseReader }: MigrateOptions) => {
      const config = loadConfig(process.env);
      // maintenance.js loads most of Muster, so a command imports it only when it is called.
      const { applyMigrations } = await import('../../maintenance.js');
      const { createLogger } = await import('../../observability/logger.js');
      const { applied } = await applyMigrations(config, createLogger({ level: config.logLevel, format: config.logFormat }), {
        runtime,
        reader,
        warehouseReader,
      });
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
