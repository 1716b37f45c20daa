import type { Command } from 'commander';
import { loadServerConfig } from '../config/config.js';

export function registerApi(program: Command): void {
  program
    .command('api')
    .description('serve the admin API; workers run beside it')
    .option('--json', 'changes nothing: the log is one JSON object a line in any case')
    .action(async () => {
      const config = loadServerConfig(process.env);
      const { serveRole } = await import('./serve.js');
      await serveRole(config, 'api');
    });
}
