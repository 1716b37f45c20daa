import type { Command } from 'commander';
import type { z } from 'zod';
import type { ConnectLink } from '../api/connect-links.js';
import { openAdminClient } from './admin-client.js';
import { companyOption, environmentOption, type ListOptions, operatorCommand } from './operator-command.js';
import { time } from './table.js';

export function registerConnectLink(program: Command): void {
  operatorCommand(program, 'connect-link', 'make a single-use link with which a customer connects a company')
    .addOption(environmentOption().makeOptionMandatory())
    .addOption(companyOption())
    .addHelpText('after', '\nWithout --company it connects the company that is chosen on the consent screen.')
    .action(async ({ environment, company, ...options }: ListOptions) => {
      const body = { environment, company_id: company };
      const link = await openAdminClient(options).post<z.output<typeof ConnectLink>>('/api/connect-links', body);
      console.log(options.json ? JSON.stringify(link) : link.url);
      // Standard output carries the link alone, since it goes into a mail or a script as it is.
      if (!options.json) console.error(`Good for one company, until ${time(link.expires_at)}.`);
    });
}
