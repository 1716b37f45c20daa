import { type Command, InvalidArgumentError } from 'commander';
import type { CompanyModel } from '../../api/companies/company-model.js';
import { NO_QUIET_HOURS, readQuietWindows } from '../../core/quiet-hours.js';
import { type Columns, print, time } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { COMPANY_COLUMNS } from './companies.js';
import { type CompanyOptions, companyCommand, companyPath } from './operator-command.js';

const OF_THE_INSTALLATION = 'default';

/** With this command a person sees or sets when nothing is asked of the service for a company. */
export function registerQuietHours(program: Command): void {
  const what = 'show or set the hours in which Muster asks nothing of the service for a company';
  companyCommand(program, 'quiet-hours', what)
    .argument(
      '[windows]',
      `windows in SYNC_TIMEZONE like 07:00-09:00,12:00-13:00; ${NO_QUIET_HOURS}: at any hour; ${OF_THE_INSTALLATION}: those of QUIET_HOURS`,
      checked,
    )
    .action(async (windows: string | undefined, options: CompanyOptions) => {
      const client = openAdminClient(options);
      const body = { quiet_hours: windows === OF_THE_INSTALLATION ? null : windows };
      const company = await (windows === undefined
        ? client.get<CompanyModel>(companyPath(options))
        : client.post<CompanyModel>(`${companyPath(options)}/quiet-hours`, body));
      print([company], COLUMNS, options);
    });
}

/** Refuses what the API would, with all faults at once. */
function checked(text: string): string {
  if (text === NO_QUIET_HOURS || text === OF_THE_INSTALLATION) return text;
  const read = readQuietWindows(text);
  if ('windows' in read) return text;
  throw new InvalidArgumentError(`${read.problems.join('; ')}. For example: 07:00-09:00,12:00-13:00`);
}

const COLUMNS: Columns<CompanyModel> = {
  COMPANY: COMPANY_COLUMNS['COMPANY']!,
  'QUIET HOURS': ({ quiet_hours }) => quiet_hours ?? 'those of QUIET_HOURS',
  'QUIET UNTIL': ({ quiet_until }) => time(quiet_until),
};
