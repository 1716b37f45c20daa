import type { Command } from 'commander';
import type { RekeyedModel } from '../admin/rekey.js';
import { openAdminClient } from './admin-client.js';
import { companyCommand, companyPath, type CompanyOptions } from './operator-command.js';
import { print } from './table.js';

export function registerRekey(program: Command): void {
  companyCommand(program, 'rekey', 'give up the ids of a list, after the catalogue names its records by another member')
    .requiredOption('--resource <name>', 'the list')
    .action(async ({ resource, ...options }: CompanyOptions & { resource: string }) => {
      const rekeyed = await openAdminClient(options).post<RekeyedModel>(`${companyPath(options)}/rekey`, { resource });
      const columns = { RESOURCE: (row: RekeyedModel) => row.resource, DELETED: (row: RekeyedModel) => row.deleted };
      print([rekeyed], columns, options);
    });
}
