import type { Command } from 'commander';
import { loadConfig } from '../config/config.js';

export function registerMigrate(program: Command): void {
  program
    .command('migrate')
    .description('apply the migrations that the database lacks (up, api and worker do so by themselves)')
    .option('--json', 'print one JSON object a line')
    .action(async ({ json }: { json?: boolean }) => {
      const config = loadConfig(process.env);
      // app.js loads the whole of Muster, so only the commands that run Muster import it, and only when they are called.
      const { applyMigrations } = await import('../app.js');
      const { createLogger } = await import('../observability/logger.js');
      const { applied } = await applyMigrations(config, createLogger({ level: config.logLevel }));
      if (json) for (const migration of applied) console.log(JSON.stringify({ migration }));
      else
        console.log(
          applied.length === 0 ? 'The database is up to date.' : `Applied:\n${applied.map((name) => `  ${name}`).join('\n')}`,
        );
    });
}
