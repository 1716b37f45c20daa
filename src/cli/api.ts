import type { Command } from 'commander';
import { loadServerConfig } from '../config/server-config.js';

export function registerApi(program: Command): void {
  program
    .command('api')
    .description('serve the admin API; workers run beside it')
    .action(async () => {
      const config = loadServerConfig(process.env);
      const { serveRole } = await import('./serve.js');
      await serveRole(config, 'api');
    });
}
