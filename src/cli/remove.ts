import type { Command } from 'commander';
import { openAdminClient } from './admin-client.js';
import { CommandFailure } from './exit-code.js';
import { ASKS, type CompanyOptions, companyCommand, companyPath, confirmed } from './operator-command.js';
import { print } from './table.js';

export function registerRemove(program: Command): void {
  companyCommand(program, 'remove', 'remove a company: its tokens and mirrored rows go, the audit stays')
    .option('--yes', 'do not ask')
    .addHelpText('after', ASKS)
    .action(async ({ yes, ...options }: CompanyOptions & { yes?: boolean }) => {
      const { environment, company } = options;
      if (!(await confirmed(`Remove company ${company} (${environment}) and its mirrored rows?`, { yes })))
        throw new CommandFailure('Nothing was removed.');
      await openAdminClient(options).delete(companyPath(options));
      print([{ environment, company_id: company, removed: true }], { REMOVED: () => `${company} (${environment})` }, options);
    });
}
