import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { ForgottenModel, LiftedModel } from '../../api/companies/forget.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { members, print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { askingFirst, type CompanyOptions, companyCommand, companyPath, confirm, resourceOption } from './operator-command.js';
import { didYouMean } from './records.js';

const HELP = `
The command reads the id from standard input, where only you see it: every user of the machine can see the arguments of a process, and shells
keep them.
  echo "$ID" | muster forget --environment production --company … --resource employees

It erases the record from mirror, feed, history, rejected records and child lists, and keeps it out from now on. --lift lets it in again.
An id of which nothing is found is kept out, too: the command says so and exits 1, since the id may be misspelt. \`muster records\` finds a person by name.`;

interface ForgetOptions extends CompanyOptions {
  readonly resource: string;
  readonly lift?: boolean;
  readonly yes?: boolean;
}

export function registerForget(program: Command): void {
  const command = companyCommand(program, 'forget', 'erase one person, and keep the person out of every later walk')
    .addOption(resourceOption('the list').makeOptionMandatory())
    .argument('[id]', 'id of the record; better: from standard input')
    .option('--lift', 'let the person in again: the next sync writes the record, if the service still has it');
  askingFirst(command)
    .addHelpText('after', HELP)
    .action(async (given: string | undefined, { resource, lift, yes, ...options }: ForgetOptions) => {
      const { environment, company } = options;
      const id = given === undefined || given === '-' ? await readId() : given;
      const what = lift ? 'Let this record in again' : 'Erase this record permanently, and keep it out';
      await confirm(`${what}: ${resource} of company ${company} (${environment})?`, yes, 'Nothing was done.');
      const client = openAdminClient(options);
      const path = `${companyPath(options)}/forget` as const;
      if (lift)
        print(
          [{ lifted: String((await client.post<LiftedModel>(`${path}/lift`, { resource, id })).lifted) }],
          members('lifted'),
          options,
        );
      else {
        const forgotten = await client.post<ForgottenModel>(path, { resource, id });
        const { erased, similar = [] } = forgotten;
        const isFound = forgotten.found !== false;
        if (options.json) print([forgotten], {}, options);
        else if (isFound) print([{ erased }], members('erased'), options);
        if (!isFound)
          throw new CommandFailure(
            `Nothing was found in ${resource} with this id; the id is kept out from now on.${didYouMean(similar)}`,
          );
      }
    });
}

/** Reads one line: on a terminal after a question, otherwise all of standard input. */
async function readId(): Promise<string> {
  const id = process.stdin.isTTY ? await ask() : await text(process.stdin);
  const line = id.replace(/\r?\n$/, '');
  if (line === '' || line.includes('\n')) throw new UsageFailure('Give one id on standard input, and nothing else.');
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
