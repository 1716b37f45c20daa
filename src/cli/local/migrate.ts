import type { Command } from 'commander';
import { loadConfig } from '../../config/config.js';

export function registerMigrate(program: Command): void {
  program
    .command('migrate')
    .description('apply the migrations that the database lacks (up, api and worker do so by themselves)')
    .option(
      '--grant-runtime <role>',
      'then grant a role all that api and workers need, so that they run with less than the owner of the database',
    )
    .option('--grant <role>', 'then let a role read what is made for readers: schemas mirror and warehouse')
    .option('--json', 'print one JSON object a line')
    .action(async ({ json, grantRuntime: runtime, grant: reader }: { json?: boolean; grantRuntime?: string; grant?: string }) => {
      const config = loadConfig(process.env);
      // maintenance.js loads most of Muster, so only the commands that run Muster import it, and only when they are called.
      const { applyMigrations } = await import('../../maintenance.js');
      const { createLogger } = await import('../../observability/logger.js');
      const { applied } = await applyMigrations(config, createLogger({ level: config.logLevel, format: config.logFormat }), {
        runtime,
        reader,
      });
      if (json) for (const migration of applied) console.log(JSON.stringify({ migration }));
      else
        console.log(
          applied.length === 0 ? 'The database is up to date.' : `Applied:\n${applied.map((name) => `  ${name}`).join('\n')}`,
        );
      for (const [granted, may] of [
        [runtime, 'run api and workers'],
        [reader, 'read schemas mirror and warehouse'],
      ])
        if (granted !== undefined) console.log(json ? JSON.stringify({ granted }) : `${granted} may ${may}.`);
    });
}
