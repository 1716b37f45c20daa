import type { Command } from 'commander';
import type { RejectedRecordModel } from '../../api/runs/rejected-records.js';
import { COMPANY, type Columns, members, print, spare } from '../table.js';
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
    .action(async ({ json, wide, url, company, ...query }: ListOptions) => {
      const filter = { company_id: company, ...query };
      const records = await openAdminClient({ url }).list<RejectedRecordModel>('/api/rejected', filter);
      print(records, COLUMNS, { json, wide }, 'No records are rejected.');
    });
}

/** The table leaves out the texts, since a terminal would keep them in its history. */
const COLUMNS: Columns<RejectedRecordModel> = {
  ...COMPANY,
  ...members('resource'),
  ...spare(members('run_id')),
  ...members('page', 'position', 'reason'),
};
