import type { Command } from 'commander';
import { loadServerConfig } from '../config/server-config.js';

export function registerWorker(program: Command): void {
  program
    .command('worker')
    .description('mirror companies and refresh tokens; any number of workers share the work')
    .action(async () => {
      const config = loadServerConfig(process.env);
      const { serveRole } = await import('./serve.js');
      await serveRole(config, 'worker');
    });
}
