import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { loadConfig } from '../../config/config.js';
import type { StoredSuppressions } from '../../maintenance.js';
import { UsageFailure } from '../exit-code.js';
import { members, print } from '../table.js';

const HELP = `
A mark keeps a forgotten record out. It is a keyed hash: no id can be told from it. These commands need the database and the encryption keys, not the
admin API: run them with the environment of the workers.

Before you need it:     muster marks export > marks.json   (each time somebody was forgotten; or with every backup)
Behind a restore:       muster marks restore marks.json && muster marks apply`;

export function registerMarks(program: Command): void {
  const group = program
    .command('marks')
    .description('keep the marks of who was forgotten, and apply them')
    .addHelpText('after', HELP);
  group
    .command('export')
    .description('print all marks and their encrypted key as JSON')
    .action(() => withMarks(async ({ copy }) => console.log(JSON.stringify(await copy()))));
  group
    .command('restore')
    .description('add the marks of an export to those of this database')
    .argument('<file>', 'what `muster marks export` has printed')
    .option('--json', 'print one JSON object a line')
    .action(async (file: string, options: { json?: boolean }) => {
      const text = await readFile(file, 'utf8').catch((cause: unknown) => {
        throw new UsageFailure(`${file} cannot be read.`, { cause });
      });
      await withMarks(async ({ restore }) => print([{ lists: await restore(parsed(text, file)) }], members('lists'), options));
    });
  group
    .command('apply')
    .description('erase again what marks say and the mirror still holds, as behind a restore; as often as you like')
    .option('--json', 'print one JSON object a line')
    .action((options: { json?: boolean }) =>
      withMarks(async ({ apply }) => print([{ erased: await apply() }], members('erased'), options)),
    );
}

function parsed(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageFailure(`${file} holds no JSON: give what \`muster marks export\` has printed.`);
  }
}

async function withMarks(work: (marks: StoredSuppressions) => Promise<void>): Promise<void> {
  const config = loadConfig(process.env);
  const { withStoredSuppressions } = await import('../../maintenance.js');
  const { createLogger } = await import('../../observability/logger.js');
  await withStoredSuppressions(config, createLogger({ level: config.logLevel, format: config.logFormat }), work);
}
