import type { Command } from 'commander';
import { loadConfig } from '../config/config.js';

export function registerWorker(program: Command): void {
  program
    .command('worker')
    .description('mirror companies and refresh tokens; any number of workers share the work')
    .action(async () => {
      const config = loadConfig(process.env);
      const { serveRole } = await import('./serve.js');
      await serveRole(config, 'worker');
    });
}
