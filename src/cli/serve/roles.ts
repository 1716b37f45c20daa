import type { Command } from 'commander';
import { loadServerConfig } from '../../config/config.js';

/** The commands that serve one role each. */
export function registerRoles(program: Command): void {
  for (const [role, what] of [
    ['api', 'serve the admin API; workers run beside it'],
    ['worker', 'mirror companies and refresh tokens; any number of workers share the work'],
  ] as const) {
    program
      .command(role)
      .description(what)
      .option('--json', 'changes nothing: the log is one JSON object a line in any case')
      .action(async () => {
        const config = loadServerConfig(process.env);
        const { serveRole } = await import('./serve.js');
        await serveRole(config, role);
      });
  }
}
