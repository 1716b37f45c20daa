import { type Command, Option } from 'commander';
import type { TriedListModel } from '../../api/companies/try.js';
import { CommandFailure } from '../exit-code.js';
import { openAdminClient } from './admin-client.js';
import { type CompanyOptions, companyCommand, companyPath, refuse } from './operator-command.js';

const HELP = `
It reads a few pages of a list, with at most 30 requests, and stores nothing.
  muster try employees --environment test --company …
  muster try /api/companies/{company_id}/absences --environment test --company … > absences.yaml

It prints YAML: the entry, and everything else as comments. It shows values of records only with --samples.
Exit code 1: nothing fits, or the list could not be read.`;

interface TryOptions extends CompanyOptions {
  readonly base?: string;
  readonly method?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, string | number | boolean>>;
  readonly samples?: boolean;
}

export function registerTry(program: Command): void {
  companyCommand(program, 'try', 'find out how a list is paged, and print a catalogue entry for it')
    .argument('<resource_or_path>', 'a list of the catalogue, or a path with {company_id}')
    .addOption(
      new Option('--method <method>', 'the method of the list (default: from the catalogue, or GET)').choices(['GET', 'POST']),
    )
    .option('--base <name>', 'the further host of the API that has the list, as in a catalogue entry (…_BASE_URL_<NAME>)')
    .option('--query <name=value>', 'a constant that every request carries; you may repeat it', addConstant)
    .option('--body <name=value>', 'a constant in the body of a POST; you may repeat it', addJsonConstant)
    .option('--samples', 'show a few records, redacted by the privacy rules of the catalogue')
    .addHelpText('after', HELP)
    .action(async (list: string, { base, method, query, body, samples, json, ...options }: TryOptions) => {
      const named = list.startsWith('/') ? { path: list } : { resource: list };
      const listToTry = { ...named, base, method, query, body, samples };
      const tried = await openAdminClient(options).post<TriedListModel>(`${companyPath(options)}/try`, listToTry);
      for (const line of json ? [JSON.stringify(tried)] : linesOf(tried)) console.log(line);
      if (tried.outcome === 'nothing') throw new CommandFailure('No entry was found for this list.');
    });
}

/** The report as YAML. Only the entry is no comment, so that the output may become a catalogue file. */
function linesOf({ entry, findings, look_up, requests, samples }: TriedListModel): string[] {
  const width = Math.max(...findings.map(({ about }) => about.length));
  const comments = [
    'Findings (with the numbers of the requests that showed them):',
    ...findings.map(
      ({ about, says, requests: numbers }) =>
        `  ${about.padEnd(width)}  ${says}${numbers.length > 0 ? ` [${numbers.join(', ')}]` : ''}`,
    ),
    ...(look_up.length > 0 ? ['Look up:', ...look_up.map((each) => `  - ${each}`)] : []),
    'Requests:',
    ...requests.map(({ number, asked, status, saw }) => `  ${number}. ${asked}: ${status ?? 'no answer'}, ${saw}`),
    ...(samples.length > 0 ? ['Samples:', ...samples.map((each) => `  ${each}`)] : []),
  ];
  return [
    ...comments.map((line) => `# ${line.replaceAll(/\s*[\r\n]+\s*/g, ' ')}`),
    ...(entry === null ? [] : ['', entry.trimEnd()]),
  ];
}

function addConstant(text: string, all: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  return name === undefined ? refuse('It must be NAME=VALUE.') : { ...all, [name]: value! };
}

/** In a body, numbers and flags are sent as such, not as texts. */
function addJsonConstant(text: string, all: Readonly<Record<string, string | number | boolean>> = {}) {
  const added = addConstant(text);
  const [[name, value]] = Object.entries(added) as [[string, string]];
  const isJson = /^(true|false|-?\d{1,15})$/.test(value);
  return { ...all, [name]: isJson ? (JSON.parse(value) as number | boolean) : value };
}
