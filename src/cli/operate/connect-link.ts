import { type Command, Option } from 'commander';
import type { z } from 'zod';
import type { ConnectLink, ReauthorizationLinkModel } from '../../api/companies/connect-links.js';
import { type Columns, print, time } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import { companyOption, environmentOption, type ListOptions, operatorCommand } from './operator-command.js';

interface ConnectLinkOptions extends ListOptions {
  readonly all?: boolean;
  readonly csv?: boolean;
}

export function registerConnectLink(program: Command): void {
  operatorCommand(
    program,
    'connect-link',
    'make a single-use link with which a customer connects a company, or one for each company that must authorize again',
  )
    .addOption(environmentOption().makeOptionMandatory())
    .addOption(companyOption())
    .addOption(new Option('--all', 'a link for every company that must authorize again').conflicts('company'))
    .addOption(new Option('--csv', 'with --all, print CSV (RFC 4180), for spreadsheets').conflicts('json').implies({ all: true }))
    .addHelpText('after', '\nWithout --company the link connects the company chosen on the consent screen.')
    .action(async ({ environment, company, all, csv, ...options }: ConnectLinkOptions) => {
      if (all) return printAll(await linksForAll(openAdminClient(options), environment), { ...options, csv });
      const body = { environment, company_id: company };
      const link = await openAdminClient(options).post<z.output<typeof ConnectLink>>('/api/connect-links', body);
      console.log(options.json ? JSON.stringify(link) : link.url);
      // Standard output has only the link, ready for a mail or a script.
      if (!options.json) console.error(`Good for one company, until ${time(link.expires_at)}.`);
    });
}

async function linksForAll(client: AdminClient, environment: string | undefined): Promise<ReauthorizationLinkModel[]> {
  const links: ReauthorizationLinkModel[] = [];
  let cursor: string | null | undefined;
  do {
    const page: { data: ReauthorizationLinkModel[]; next_cursor: string | null } = await client.post(
      '/api/connect-links/reauthorization',
      { environment, cursor },
    );
    links.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return links;
}

async function printAll(
  links: readonly ReauthorizationLinkModel[],
  { json, csv }: { readonly json?: boolean | undefined; readonly csv?: boolean | undefined },
): Promise<void> {
  if (!csv) return print(links, COLUMNS, { json });
  const { reauthorizationLinksCsv } = await import('../../api/companies/connect-links.js');
  process.stdout.write(reauthorizationLinksCsv(links));
}

const COLUMNS: Columns<ReauthorizationLinkModel> = {
  COMPANY: ({ company_id: id, company_name: name }) => ({ id, name }),
  LINK: ({ url }) => url,
  UNTIL: ({ expires_at }) => time(expires_at),
};
