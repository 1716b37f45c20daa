import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { openAdminClient } from './admin-client.js';
import { CommandFailure } from './exit-code.js';
import { companyCommand, companyPath, type CompanyOptions } from './operator-command.js';
import { print } from './table.js';

export function registerRemove(program: Command): void {
  companyCommand(program, 'remove', 'remove a company: its tokens and mirrored rows go, the audit stays')
    .option('--yes', 'do not ask')
    .action(async ({ yes, ...options }: CompanyOptions & { yes?: boolean }) => {
      const { environment, company } = options;
      if (
        !yes &&
        process.stdin.isTTY &&
        !(await confirm(`Remove company ${company} (${environment}) and its mirrored rows? [y/N] `))
      ) {
        throw new CommandFailure('Nothing was removed.');
      }
      await openAdminClient(options).delete(companyPath(options));
      print([{ environment, company_id: company, removed: true }], { REMOVED: () => `${company} (${environment})` }, options);
    });
}

async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}
