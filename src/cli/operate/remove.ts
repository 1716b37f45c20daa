import type { Command } from 'commander';
import { print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { askingFirst, type CompanyOptions, companyCommand, companyPath, confirm } from './operator-command.js';

export function registerRemove(program: Command): void {
  const command = companyCommand(program, 'remove', 'remove a company: its tokens and mirrored rows go, the audit stays');
  askingFirst(command).action(async ({ yes, ...options }: CompanyOptions & { yes?: boolean }) => {
    const { environment, company } = options;
    await confirm(`Remove company ${company} (${environment}) and its mirrored rows?`, yes, 'Nothing was removed.');
    await openAdminClient(options).delete(companyPath(options));
    print([{ environment, company_id: company, removed: true }], { REMOVED: () => `${company} (${environment})` }, options);
  });
}
