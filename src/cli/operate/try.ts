import { type Command, Option } from 'commander';
import type { TriedListModel } from '../../api/companies/try.js';
import { CommandFailure } from '../exit-code.js';
import { openAdminClient } from './admin-client.js';
import { type CompanyOptions, companyCommand, companyPath, refuse } from './operator-command.js';

const HELP = `
It asks a list for a few pages, with several sizes, at most 30 requests in all, and stores nothing.
  muster try employees --environment test --company …
  muster try /api/companies/{company_id}/absences --environment test --company … > absences.yaml

What it prints is YAML: the entry, and all else as comments. No values of records are shown unless you say --samples.
Exit code 1: nothing fits, or nothing could be asked.`;

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
      new Option('--method <method>', 'how the list is read (default: GET, or what the catalogue says)').choices(['GET', 'POST']),
    )
    .option('--base <name>', 'the further host of the API that has the list, as an entry names it (…_BASE_URL_<NAME>)')
    .option('--query <name=value>', 'a constant that every request carries; may be given several times', addConstant)
    .option('--body <name=value>', 'the same in the body of a POST', addJsonConstant)
    .option('--samples', 'show a few records, treated by the privacy rules of the catalogue')
    .addHelpText('after', HELP)
    .action(async (list: string, { base, method, query, body, samples, json, ...options }: TryOptions) => {
      const named = list.startsWith('/') ? { path: list } : { resource: list };
      const asked = { ...named, base, method, query, body, samples };
      const tried = await openAdminClient(options).post<TriedListModel>(`${companyPath(options)}/try`, asked);
      for (const line of json ? [JSON.stringify(tried)] : linesOf(tried)) console.log(line);
      if (tried.outcome === 'nothing') throw new CommandFailure('No entry was found for this list.');
    });
}

/** A report as YAML: its own lines are comments, so that what is printed may go into a catalogue file. */
function linesOf({ entry, findings, look_up, requests, samples }: TriedListModel): string[] {
  const width = Math.max(...findings.map(({ about }) => about.length));
  const comments = [
    'What was seen (with the numbers of the requests that showed it):',
    ...findings.map(
      ({ about, says, requests: numbers }) =>
        `  ${about.padEnd(width)}  ${says}${numbers.length > 0 ? ` [${numbers.join(', ')}]` : ''}`,
    ),
    ...(look_up.length > 0 ? ['What to look up:', ...look_up.map((each) => `  - ${each}`)] : []),
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

/** In a body numbers and flags are no texts. */
function addJsonConstant(text: string, all: Readonly<Record<string, string | number | boolean>> = {}) {
  const added = addConstant(text);
  const [[name, value]] = Object.entries(added) as [[string, string]];
  const isJson = /^(true|false|-?\d{1,15})$/.test(value);
  return { ...all, [name]: isJson ? (JSON.parse(value) as number | boolean) : value };
}
