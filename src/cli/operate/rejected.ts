import type { Command } from 'commander';
import type { RejectedRecordModel } from '../../api/runs/rejected-records.js';
import { COMPANY, type Columns, members, print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import {
  companyOption,
  environmentOption,
  type ListOptions,
  limitOption,
  operatorCommand,
  resourceOption,
} from './operator-command.js';

export function registerRejected(program: Command): void {
  operatorCommand(program, 'rejected', 'list records that the newest walk of each list rejected')
    .addOption(environmentOption())
    .addOption(companyOption())
    .addOption(resourceOption('only records of this list'))
    .addOption(limitOption(500, 20))
    .addHelpText('after', '\nWith --json each record has its text as received, which may hold personal data.')
    .action(async ({ json, url, company, ...query }: ListOptions) => {
      const filter = { company_id: company, ...query };
      print(await openAdminClient({ url }).list<RejectedRecordModel>('/api/rejected', filter), COLUMNS, { json });
    });
}

/** The table leaves out the texts, since a terminal would keep them in its history. */
const COLUMNS: Columns<RejectedRecordModel> = {
  ...COMPANY,
  ...members('resource', 'run_id', 'page', 'position', 'reason'),
};
