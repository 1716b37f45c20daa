import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { loadConfig } from '../../config/config.js';
import type { StoredSuppressions } from '../../maintenance.js';
import { UsageFailure } from '../exit-code.js';
import { members, print } from '../table.js';

const HELP = `
A mark keeps a forgotten record out. It is a keyed hash and does not reveal the id. These commands need the database and the encryption
keys, not the admin API: run them with the environment of the workers.

Before you need it:     muster marks export > marks.json   (each time after you forgot a person, or with every backup)
After a restore:        muster marks restore marks.json && muster marks apply`;

export function registerMarks(program: Command): void {
  const group = program
    .command('marks')
    .description('back up the marks of forgotten records, and apply them')
    .addHelpText('after', HELP);
  group
    .command('export')
    .description('print all marks and their encrypted key as JSON')
    .action(() => withMarks(async ({ copy }) => console.log(JSON.stringify(await copy()))));
  group
    .command('restore')
    .description('add the marks of an export to this database')
    .argument('<file>', 'the output of `muster marks export`')
    .option('--json', 'print one JSON object a line')
    .action(async (file: string, options: { json?: boolean }) => {
      const text = await readFile(file, 'utf8').catch((cause: unknown) => {
        throw new UsageFailure(`${file} cannot be read.`, { cause });
      });
      await withMarks(async ({ restore }) => print([{ lists: await restore(parsed(text, file)) }], members('lists'), options));
    });
  group
    .command('apply')
    .description('erase marked records that the mirror still holds, for example after a restore; you may repeat it')
    .option('--json', 'print one JSON object a line')
    .action((options: { json?: boolean }) =>
      withMarks(async ({ apply }) => print([{ erased: await apply() }], members('erased'), options)),
    );
}

function parsed(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageFailure(`${file} holds no JSON: give the output of \`muster marks export\`.`);
  }
}

async function withMarks(work: (marks: StoredSuppressions) => Promise<void>): Promise<void> {
  const config = loadConfig(process.env);
  const { withStoredSuppressions } = await import('../../maintenance.js');
  const { createLogger } = await import('../../observability/logger.js');
  await withStoredSuppressions(config, createLogger({ level: config.logLevel, format: config.logFormat }), work);
}
