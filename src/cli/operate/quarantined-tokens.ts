import type { Command } from 'commander';
import type { QuarantinedTokenModel } from '../../api/companies/quarantined-tokens.js';
import { COMPANY, type Columns, members, print, time } from '../table.js';
import { companyOption, environmentOption, idCommand, limitOption, listCommand } from './operator-command.js';

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

const COLUMNS: Columns<QuarantinedTokenModel> = {
  TOKEN: ({ id }) => id,
  RECEIVED: ({ received_at }) => time(received_at),
  ...COMPANY,
  ...members('reason'),
  LINK: ({ link_id }) => link_id,
};
