import type { Command } from 'commander';
import type { CompanyModel } from '../api/company-model.js';
import { openAdminClient } from './admin-client.js';
import { COMPANY_COLUMNS } from './companies.js';
import { type CompanyOptions, companyCommand, companyPath } from './operator-command.js';
import { print } from './table.js';

export function registerResume(program: Command): void {
  companyCommand(program, 'resume', 'sync a paused company again').action(async (options: CompanyOptions) => {
    const model = await openAdminClient(options).post<CompanyModel>(`${companyPath(options)}/resume`);
    print([model], COMPANY_COLUMNS, options);
  });
}
