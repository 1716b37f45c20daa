import { type Command, Option } from 'commander';
import type { AuditEntryModel } from '../../api/operation/audit-model.js';
import { COMPANY, type Columns, members, print, spare, time } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { companyOption, environmentOption, type ListOptions, limitOption, operatorCommand } from './operator-command.js';

interface AuditOptions extends ListOptions {
  readonly actor?: string;
  readonly action?: string;
  readonly csv?: boolean;
}

const SHOWN = 20;

export function registerAudit(program: Command): void {
  operatorCommand(program, 'audit', 'list who did what and how it ended, newest first')
    .addOption(environmentOption())
    .addOption(companyOption())
    .addOption(new Option('--actor <actor>', 'only entries of this actor, for example "connect link"'))
    .addOption(new Option('--action <action>', 'only entries of this action, for example company.connect'))
    .addOption(limitOption(500))
    .addOption(new Option('--csv', 'print CSV (RFC 4180), for spreadsheets').conflicts('json'))
    .addHelpText('after', `\nWithout --limit it prints the newest ${SHOWN}; with --csv, all.`)
    .action(async ({ json, wide, csv, url, company, limit = csv ? undefined : SHOWN, ...query }: AuditOptions) => {
      const filter = { company_id: company, ...query, limit };
      const entries = await openAdminClient({ url }).list<AuditEntryModel>('/api/audit', filter);
      if (!csv) return print(entries, COLUMNS, { json, wide }, 'No entries match.');
      const { auditCsv } = await import('../../api/operation/audit-csv.js');
      process.stdout.write(auditCsv(entries));
    });
}

const COLUMNS: Columns<AuditEntryModel> = {
  AT: ({ at }) => time(at),
  ...members('actor'),
  ...spare(members('role')),
  ...members('action'),
  ...COMPANY,
  DETAILS: ({ details }) =>
    Object.entries(details)
      .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join(' '),
};
