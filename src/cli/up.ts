import type { Command } from 'commander';
import { loadServerConfig } from '../config/config.js';
import { refuse } from './operator-command.js';

/** Share of the sandbox's records that changes in a minute: a person sees something move, and nothing big. */
const SANDBOX_CHANGES_PER_MINUTE = 0.001;

export function registerUp(program: Command): void {
  const changes = "share of the sandbox's records that changes in a minute";
  program
    .command('up')
    .description('start everything in one process; with no provider configured, beside a sandbox to try it on')
    .option('--sandbox-changes <share>', changes, parseShare, SANDBOX_CHANGES_PER_MINUTE)
    .option('--json', 'print one JSON object a line: what was mirrored of each list, then where to look')
    .action(async (options: { sandboxChanges: number; json?: boolean }) => {
      const config = loadServerConfig(process.env);
      const { serveEverything } = await import('./serve-everything.js');
      await serveEverything(config, options);
    });
}

function parseShare(text: string): number {
  const share = text.trim() === '' ? Number.NaN : Number(text);
  return share >= 0 && share <= 1 ? share : refuse('It must be a number from 0 to 1.');
}
