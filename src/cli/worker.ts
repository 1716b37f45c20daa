import type { Command } from 'commander';
import { loadServerConfig } from '../config/config.js';

export function registerWorker(program: Command): void {
  program
    .command('worker')
    .description('mirror companies and refresh tokens; any number of workers share the work')
    .option('--json', 'changes nothing: the log is one JSON object a line in any case')
    .action(async () => {
      const config = loadServerConfig(process.env);
      const { serveRole } = await import('./serve.js');
      await serveRole(config, 'worker');
    });
}
