import type { Command } from 'commander';
import type { ReleasedModel } from '../../api/companies/held-tokens.js';
import { print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { environmentOption, type ListOptions, operatorCommand } from './operator-command.js';

export function registerReleaseTokens(program: Command): void {
  operatorCommand(
    program,
    'release-tokens',
    'refresh the tokens again that Muster holds because the service refused others (issue tokens_held)',
  )
    .addOption(environmentOption())
    .action(async ({ environment, ...options }: ListOptions) => {
      const { released } = await openAdminClient(options).post<ReleasedModel>('/api/held-tokens/release', { environment });
      const rows = released.map((name) => ({ environment: name }));
      print(rows, { 'RELEASED IN': (row) => row.environment }, options);
    });
}
