import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { loadConfig } from '../config/config.js';
import { readJournal } from '../oauth/token-journal.js';
import { CommandFailure, UsageFailure } from './exit-code.js';
import { members, print } from './table.js';

const HELP = `
A refresh token is good once, so the tokens in a backup are mostly spent. Give the file of TOKEN_JOURNAL of every host: each company gets the newest
token of all of them, if it is newer than the one in the database. The command needs the database and the encryption keys, not the admin API: run it
with the environment of the workers. It may be repeated.

Exit code 1: a token needs an encryption key that is missing, or is damaged.`;

export function registerRestoreTokens(program: Command): void {
  program
    .command('restore-tokens')
    .description('after a restore: give companies their newest tokens of the files of TOKEN_JOURNAL')
    .argument('<file...>', 'the file of TOKEN_JOURNAL of each host')
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', HELP)
    .action(async (files: string[], options: { json?: boolean }) => {
      const texts = await Promise.all(files.map(readFiles));
      const { entries, torn } = readJournal(texts.flat().join('\n'));
      const config = loadConfig(process.env);
      const { restoreStoredTokens } = await import('../maintenance.js');
      const { createLogger } = await import('../observability/logger.js');
      const logger = createLogger({ level: config.logLevel, format: config.logFormat });
      const restored = await restoreStoredTokens(config, logger, entries);
      print([{ ...restored, torn }], members('restored', 'current', 'removed', 'unreadable', 'torn'), options);
      if (restored.unreadable > 0)
        throw new CommandFailure(
          `The tokens of ${restored.unreadable} companies could not be read: give MUSTER_ENCRYPTION_KEYS the key back with which they were made, and run this again.`,
        );
    });
}

/** The file, and what a compaction that did not end has left beside it. */
async function readFiles(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new UsageFailure(`${file} cannot be read (${cause.code}).`, { cause });
  });
  const left = await readFile(`${file}.old`, 'utf8').catch(() => '');
  return [text, left];
}
