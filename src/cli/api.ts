import type { Command } from 'commander';
import { loadConfig } from '../config/config.js';

export function registerApi(program: Command): void {
  program
    .command('api')
    .description('serve the admin API; workers run beside it')
    .action(async () => {
      const config = loadConfig(process.env);
      const { serveRole } = await import('./serve.js');
      await serveRole(config, 'api');
    });
}
