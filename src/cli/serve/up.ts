import type { Command } from 'commander';
import { loadServerConfig } from '../../config/config.js';
import { helpOf } from '../../config/settings.js';
import { FaultsError } from '../../core/errors.js';
import { UsageFailure } from '../exit-code.js';
import { refuse } from '../operate/operator-command.js';

/** The share of the sandbox's records that changes in a minute: enough for a person to see some changes. */
const SANDBOX_CHANGES_PER_MINUTE = 0.001;

interface Options {
  readonly sandbox?: boolean;
  readonly sandboxChanges: number;
  readonly json?: boolean;
}

export function registerUp(program: Command): void {
  const changes = "share of the sandbox's records that changes in a minute";
  program
    .command('up')
    .description('start everything in one process; with no provider configured, also a sandbox to try it with')
    .option(
      '--sandbox',
      'with DATABASE_URL and no provider configured: mirror the invented companies of the sandbox into that database',
    )
    .option('--sandbox-changes <share>', changes, parseShare, SANDBOX_CHANGES_PER_MINUTE)
    .option('--json', 'print one JSON object a line: what was mirrored of each list, then where to look')
    .action(async ({ sandbox: mayUseSandbox = false, ...options }: Options) => {
      const config = loadServerConfig(process.env);
      const isConfigured = Object.keys(config.providers).length > 0;
      if (isConfigured && mayUseSandbox)
        throw new UsageFailure('--sandbox starts no sandbox while a provider is configured: leave it out.');
      if (config.databaseUrl !== undefined && !isConfigured && !mayUseSandbox) throw noProvider();
      const { serveEverything } = await import('./serve-everything.js');
      await serveEverything(config, options);
    });
}

/** A forgotten setting must not put invented companies into a real database. */
function noProvider(): FaultsError {
  const problem =
    'is missing, and so are PRODUCTION_AUTH_URL, PRODUCTION_CLIENT_ID and PRODUCTION_CLIENT_SECRET, or the TEST_… ones: DATABASE_URL is set, ' +
    'and invented companies are mirrored into your database only if you ask for them: `muster up --sandbox`';
  const fault = { where: 'PRODUCTION_BASE_URL', problem, example: helpOf('PRODUCTION_BASE_URL').example };
  return new FaultsError('invalid_configuration', 'Muster cannot start: 1 setting is wrong or missing.', [fault]);
}

function parseShare(text: string): number {
  const share = text.trim() === '' ? Number.NaN : Number(text);
  return share >= 0 && share <= 1 ? share : refuse('It must be a number from 0 to 1.');
}
