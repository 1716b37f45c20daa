import type { Command } from 'commander';
import { loadServerConfig } from '../../config/config.js';

export function registerRoles(program: Command): void {
  for (const [role, what] of [
    ['api', 'serve the admin API; workers are separate processes'],
    ['worker', 'mirror companies and refresh tokens; any number of workers share the work'],
  ] as const) {
    program
      .command(role)
      .description(what)
      .option('--json', 'has no effect: the log is always one JSON object a line')
      .action(async () => {
        const config = loadServerConfig(process.env);
        const { serveRole } = await import('./serve.js');
        await serveRole(config, role);
      });
  }
}
