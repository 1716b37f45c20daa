import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { CompanyModel } from '../../api/companies/company-model.js';
import { UsageFailure } from '../exit-code.js';
import { print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { COMPANY_COLUMNS } from './companies.js';
import { type CompanyOptions, companyIdOption, environmentOption, operatorCommand } from './operator-command.js';

export function registerOnboard(program: Command): void {
  operatorCommand(program, 'onboard', 'onboard a company with its refresh token, read from standard input')
    .addOption(environmentOption().makeOptionMandatory())
    .addOption(companyIdOption().makeOptionMandatory())
    .option('--refresh-token-file <file>', 'read the refresh token from this file instead')
    .addHelpText('after', '\nThe refresh token is never an argument, since every process on the machine could read it there.')
    .action(async ({ refreshTokenFile, ...options }: CompanyOptions & { refreshTokenFile?: string }) => {
      const client = openAdminClient(options);
      const [refreshToken, missing] =
        refreshTokenFile === undefined
          ? [await readSecret(), 'No refresh token was given on standard input.']
          : [await readSecretFile(refreshTokenFile), `The refresh token file ${refreshTokenFile} is empty.`];
      if (!refreshToken) throw new UsageFailure(missing);
      const { environment, company } = options;
      const body = { environment, company_id: company, refresh_token: refreshToken };
      const model = await client.post<CompanyModel>('/api/companies', body);
      print([model], COMPANY_COLUMNS, options);
    });
}

/** Reads a secret from a pipe, or from the terminal without showing it. */
async function readSecret(): Promise<string> {
  if (!process.stdin.isTTY) return (await text(process.stdin)).trim();
  process.stderr.write('Refresh token (not shown): ');
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  try {
    return (await terminal.question('')).trim();
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}

async function readSecretFile(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (cause) {
    throw new UsageFailure(`The refresh token file ${file} cannot be read.`, { cause });
  }
}
