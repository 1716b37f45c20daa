import type { Command } from 'commander';
import type { ReleasedModel } from '../../api/companies/held-tokens.js';
import type { QuarantinedTokenModel } from '../../api/companies/quarantined-tokens.js';
import { COMPANY, type Columns, members, print, time } from '../table.js';
import { openAdminClient } from './admin-client.js';
import {
  companyOption,
  environmentOption,
  idCommand,
  type ListOptions,
  limitOption,
  listCommand,
  operatorCommand,
} from './operator-command.js';

export function registerQuarantinedTokens(program: Command): void {
  const tokens = program
    .command('quarantined-tokens')
    .description('list refresh tokens that belong to no onboarded company, and delete them');
  const filters = [environmentOption(), companyOption(), limitOption(500, 100)];
  listCommand(tokens, 'list tokens, newest first', filters, { path: '/api/quarantined-tokens', columns: COLUMNS });
  idCommand(tokens, 'remove', 'delete a token permanently', async (client, id, options) => {
    await client.delete(`/api/quarantined-tokens/${id}`);
    print([{ id, deleted: true }], { DELETED: () => id }, options);
  }).alias('delete');
}

/** Held tokens belong to onboarded companies; quarantined ones to none. */
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

const COLUMNS: Columns<QuarantinedTokenModel> = {
  TOKEN: ({ id }) => id,
  RECEIVED: ({ received_at }) => time(received_at),
  ...COMPANY,
  ...members('reason'),
  LINK: ({ link_id }) => link_id,
};
