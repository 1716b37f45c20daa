import type { Command } from 'commander';
import { loadConfig } from '../../config/config.js';
import { readJournal, readJournalFile } from '../../oauth/token-journal.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { members, print } from '../table.js';

const HELP = `
A refresh token works once, so most tokens in a backup are spent. Give the TOKEN_JOURNAL file of every host: each company gets its newest
token from all files, if it is newer than the one in the database. The command needs the database and the encryption keys, not the admin
API: run it with the environment of the workers. You may repeat it.

Exit code 1: a token needs an encryption key that is missing, or is damaged.`;

export function registerRestoreTokens(program: Command): void {
  program
    .command('restore-tokens')
    .description('after a restore: give companies their newest tokens from the TOKEN_JOURNAL files')
    .argument('<file...>', 'the TOKEN_JOURNAL file of each host')
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', HELP)
    .action(async (files: string[], options: { json?: boolean }) => {
      const texts = await Promise.all(files.map(readFile));
      const { entries, torn } = readJournal(texts.join('\n'));
      const config = loadConfig(process.env);
      const { restoreStoredTokens } = await import('../../maintenance.js');
      const { createLogger } = await import('../../observability/logger.js');
      const logger = createLogger({ level: config.logLevel, format: config.logFormat });
      const { toRemove, ...restored } = await restoreStoredTokens(config, logger, entries);
      print([{ ...restored, torn }], members('restored', 'current', 'removed', 'unreadable', 'torn'), options);
      for (const { environment, companyId } of toRemove)
        console.error(
          `This company was removed after the backup, so remove it again: muster remove --environment ${environment} --company ${companyId}`,
        );
      if (restored.unreadable > 0)
        throw new CommandFailure(
          `The tokens of ${restored.unreadable} companies could not be read: put the key that encrypted them back into MUSTER_ENCRYPTION_KEYS, and run this again.`,
        );
    });
}

function readFile(file: string): Promise<string> {
  return readJournalFile(file).catch((cause: NodeJS.ErrnoException) => {
    throw new UsageFailure(`${file} cannot be read (${cause.code}).`, { cause });
  });
}
