import { createInterface } from 'node:readline/promises';
import { type Command, type CommandOptions, InvalidArgumentError, Option } from 'commander';
import { ENVIRONMENTS, type Environment, parseCompanyId } from '../../core/company.js';
import { CommandFailure } from '../exit-code.js';
import { type Columns, type PrintOptions, print, withFilled } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import { resolveNames } from './resolve-names.js';

/** The options of every operator command. */
export interface OperatorOptions extends PrintOptions {
  readonly url?: string;
}

export interface CompanyOptions extends OperatorOptions {
  readonly environment: Environment;
  readonly company: string;
}

/** Filters of lists. Each list takes some of these. */
export interface ListOptions extends OperatorOptions, Partial<CompanyOptions> {
  readonly status?: string;
  readonly type?: string;
  readonly resource?: string;
  readonly limit?: number;
}

/** A command that calls the admin API of a running Muster. */
export function operatorCommand(program: Command, name: string, description: string, options?: CommandOptions): Command {
  return program
    .command(name, options)
    .description(description)
    .option('--json', 'print one JSON object a line')
    .option('--wide', 'print tables whole, however wide, with ids')
    .option(
      '--url <url>',
      'address of the admin API (default: where `muster up` listens, http://HOST:PORT, or PUBLIC_URL)',
      parseUrl,
    )
    .hook('preAction', (_program, command) => resolveNames(command));
}

/** A command that acts on one company. The environment may be left out where the company is onboarded in one of them alone. */
export function companyCommand(program: Command, name: string, description: string): Command {
  return operatorCommand(program, name, description)
    .addOption(environmentOption())
    .addOption(companyOption().makeOptionMandatory());
}

/** The default command `list` of a group: prints the list at `path` with `filters`. Columns in `rare` appear only if an item has a value. */
export function listCommand<T extends object>(
  group: Command,
  description: string,
  filters: readonly Option[],
  { path, columns, rare = {} }: { readonly path: string; readonly columns: Columns<T>; readonly rare?: Columns<T> },
): void {
  const list = operatorCommand(group, 'list', `${description} (default)`, { isDefault: true });
  for (const filter of filters) list.addOption(filter);
  list.action(async ({ json, wide, url, company, ...query }: ListOptions) => {
    const items = await openAdminClient({ url }).list<T>(path, { company_id: company, ...query });
    const isFiltered = company !== undefined || Object.keys(query).some((name) => name !== 'limit');
    print(items, withFilled(items, columns, rare), { json, wide }, noneOf(group.name().replaceAll('-', ' '), isFiltered));
  });
}

/** Says that a list is empty, and whether its filters may be the reason. */
export function noneOf(items: string, isFiltered: boolean): string {
  return isFiltered ? `No ${items} match.` : `There are no ${items}.`;
}

/** A command of a group whose argument is an id, for example of a run. `act` gets the id encoded for a path. */
export function idCommand(
  group: Command,
  name: string,
  description: string,
  act: (client: AdminClient, id: string, options: OperatorOptions) => Promise<void>,
): Command {
  return operatorCommand(group, name, description)
    .argument('<id>', `id of the ${group.name().replace(/s$/, '')}`)
    .action((id: string, options: OperatorOptions) => act(openAdminClient(options), encodeURIComponent(id), options));
}

export function environmentOption(): Option {
  return new Option('--environment <environment>', 'environment of the service').choices(ENVIRONMENTS);
}

/** The company by its id, a part of its name or the beginning of its id: `resolveNames` finds the id before the command acts. */
export function companyOption(): Option {
  return new Option('--company <company>', 'its name or a part of it, its company_id, or the beginning of that').argParser(
    (text) =>
      parseCompanyId(text) ??
      (/^[^\p{Cc}\p{Cs}]{1,100}$/u.test(text.trim()) ? text.trim() : refuse('It must be a name or a company_id.')),
  );
}

/** A company that may not be onboarded yet. */
export function companyIdOption(): Option {
  return new Option('--company <company_id>', 'GUID of the company').argParser((text) => {
    return parseCompanyId(text) ?? refuse('It must be a GUID: Muster learns the name of a company when it is connected.');
  });
}

/** A list by its name: the command refuses one that Muster does not know. */
export function resourceOption(description: string): Option {
  return new Option('--resource <name>', description);
}

export function limitOption(most: number, preset?: number): Option {
  return new Option('--limit <count>', `the most to print, up to ${most}`).argParser(parseCount).default(preset);
}

export function companyPath({ environment, company }: Pick<CompanyOptions, 'environment' | 'company'>): string {
  return `/api/companies/${environment}/${company}`;
}

export function parseCount(text: string): number {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : refuse('It must be a whole number above 0.');
}

function parseUrl(text: string): string {
  return URL.canParse(text) && /^https?:/.test(text) ? text : refuse('It must be an address like http://127.0.0.1:8080.');
}

/** Refuses the value of an option; commander names the option and the value. */
export function refuse(problem: string): never {
  throw new InvalidArgumentError(problem);
}

/** Adds --yes to a command that asks before it acts, with `confirm`. */
export function askingFirst(command: Command): Command {
  return command
    .option('--yes', 'do not ask')
    .addHelpText('after', '\nOn a terminal the command asks first; without one, as in a script, it does not.');
}

/** Asks on the terminal; without a terminal, or with --yes, it asks nothing. Throws `otherwise` if the answer is no. */
export async function confirm(question: string, yes: boolean | undefined, otherwise: string): Promise<void> {
  if (yes || !process.stdin.isTTY) return;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    if (!/^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())) throw new CommandFailure(otherwise);
  } finally {
    terminal.close();
  }
}
