import { createInterface } from 'node:readline/promises';
import { type Command, type CommandOptions, InvalidArgumentError, Option } from 'commander';
import { ENVIRONMENTS, type Environment, parseCompanyId } from '../core/company.js';

/** The options of every operator command. */
export interface OperatorOptions {
  readonly json?: boolean;
  readonly url?: string;
}

export interface CompanyOptions extends OperatorOptions {
  readonly environment: Environment;
  readonly company: string;
}

/** A command that asks a running Muster over its admin API. */
export function operatorCommand(program: Command, name: string, description: string, options?: CommandOptions): Command {
  return program
    .command(name, options)
    .description(description)
    .option('--json', 'print one JSON object a line')
    .option(
      '--url <url>',
      'address of the admin API (default: where `muster up` listens, http://HOST:PORT, or PUBLIC_URL)',
      parseUrl,
    );
}

/** A command about one company. */
export function companyCommand(program: Command, name: string, description: string): Command {
  return operatorCommand(program, name, description)
    .addOption(environmentOption().makeOptionMandatory())
    .addOption(companyOption().makeOptionMandatory());
}

export function environmentOption(): Option {
  return new Option('--environment <environment>', 'environment of the service').choices(ENVIRONMENTS);
}

export function companyOption(): Option {
  return new Option('--company <company_id>', 'GUID of the company').argParser((text) => {
    const companyId = parseCompanyId(text);
    if (companyId === undefined) throw new InvalidArgumentError('It must be a GUID.');
    return companyId;
  });
}

export function companyPath({ environment, company }: Pick<CompanyOptions, 'environment' | 'company'>): string {
  return `/api/companies/${environment}/${company}`;
}

export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.');
  return Number(text);
}

function parseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new InvalidArgumentError('It must be an address like http://127.0.0.1:8080.');
  return text;
}

/** Stands in the help of a command that asks before it acts. */
export const ASKS = '\nOn a terminal it asks first; without one, as in a script, nothing is asked.';

/** Asks on the terminal. Where there is none, or with --yes, the answer is yes without a question. */
export async function confirmed(question: string, { yes = false }: { readonly yes?: boolean | undefined }): Promise<boolean> {
  if (yes || !process.stdin.isTTY) return true;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
