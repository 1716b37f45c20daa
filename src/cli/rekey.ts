import type { Command } from 'commander';
import type { RekeyedModel } from '../api/rekey.js';
import { openAdminClient } from './admin-client.js';
import { CommandFailure } from './exit-code.js';
import { ASKS, type CompanyOptions, companyCommand, companyPath, confirmed } from './operator-command.js';
import { print } from './table.js';

export function registerRekey(program: Command): void {
  companyCommand(program, 'rekey', 'give up the ids of a list, after the catalogue names its records by another member')
    .requiredOption('--resource <name>', 'the list')
    .option('--yes', 'do not ask')
    .addHelpText('after', ASKS)
    .action(async ({ resource, yes, ...options }: CompanyOptions & { resource: string; yes?: boolean }) => {
      const { environment, company } = options;
      const question = `Mark every row of ${resource} of company ${company} (${environment}) deleted, until its next sync?`;
      if (!(await confirmed(question, { yes }))) throw new CommandFailure('Nothing was given up.');
      const rekeyed = await openAdminClient(options).post<RekeyedModel>(`${companyPath(options)}/rekey`, { resource });
      const columns = { RESOURCE: (row: RekeyedModel) => row.resource, DELETED: (row: RekeyedModel) => row.deleted };
      print([rekeyed], columns, options);
    });
}
