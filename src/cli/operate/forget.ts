import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { ForgottenModel, LiftedModel } from '../../api/companies/forget.js';
import { UsageFailure } from '../exit-code.js';
import { members, print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { askingFirst, type CompanyOptions, companyCommand, companyPath, confirm } from './operator-command.js';

const HELP = `
The id is read from standard input, where only you see it: arguments of a process are shown to everybody on the machine, and kept by shells.
  echo "$ID" | muster forget --environment production --company … --resource employees

The record goes from mirror, feed, history, rejected records and child lists, and is kept out from now on. With --lift it is let in again.`;

interface ForgetOptions extends CompanyOptions {
  readonly resource: string;
  readonly lift?: boolean;
  readonly yes?: boolean;
}

export function registerForget(program: Command): void {
  const command = companyCommand(program, 'forget', 'erase one person, and keep the person out of every walk to come')
    .requiredOption('--resource <name>', 'the list')
    .argument('[id]', 'id of the record; better: from standard input')
    .option('--lift', 'let the person in again: the next sync writes the record, if the service still has it');
  askingFirst(command)
    .addHelpText('after', HELP)
    .action(async (given: string | undefined, { resource, lift, yes, ...options }: ForgetOptions) => {
      const { environment, company } = options;
      const id = given === undefined || given === '-' ? await readId() : given;
      const what = lift ? 'Let this record in again' : 'Erase this record for good, and keep it out';
      await confirm(`${what}: ${resource} of company ${company} (${environment})?`, yes, 'Nothing was done.');
      const client = openAdminClient(options);
      const path = `${companyPath(options)}/forget` as const;
      if (lift)
        print([await client.post<LiftedModel>(`${path}/lift`, { resource, id })].map(asCells), members('lifted'), options);
      else print([await client.post<ForgottenModel>(path, { resource, id })], members('erased'), options);
    });
}

/** One line: asked for on a terminal, or all that stands in standard input. */
async function readId(): Promise<string> {
  const id = process.stdin.isTTY ? await ask() : await text(process.stdin);
  const line = id.replace(/\r?\n$/, '');
  if (line === '' || line.includes('\n')) throw new UsageFailure('Give one id in standard input, and nothing else.');
  return line;
}

async function ask(): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await terminal.question('Id of the record: ');
  } finally {
    terminal.close();
  }
}

function asCells({ lifted }: LiftedModel) {
  return { lifted: String(lifted) };
}
