import type { Command } from 'commander';
import type { RekeyedModel } from '../../api/operation/rekey.js';
import { members, print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { askingFirst, type CompanyOptions, companyCommand, companyPath, confirm } from './operator-command.js';

export function registerRekey(program: Command): void {
  const what = 'give up the ids of a list after its id in the catalogue has changed';
  const command = companyCommand(program, 'rekey', what).requiredOption('--resource <name>', 'the list');
  askingFirst(command).action(async ({ resource, yes, ...options }: CompanyOptions & { resource: string; yes?: boolean }) => {
    const { environment, company } = options;
    const question = `Mark every row of ${resource} of company ${company} (${environment}) deleted, until its next sync?`;
    await confirm(question, yes, 'Nothing was given up.');
    const rekeyed = await openAdminClient(options).post<RekeyedModel>(`${companyPath(options)}/rekey`, { resource });
    print([rekeyed], members('resource', 'deleted'), options);
  });
}
