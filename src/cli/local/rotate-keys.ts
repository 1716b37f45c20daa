import type { Command } from 'commander';
import { loadConfig } from '../../config/config.js';
import type { Rotation, UnreadableToken } from '../../oauth/key-rotation.js';
import { CommandFailure } from '../exit-code.js';
import { type Columns, tableLines } from '../table.js';

const HELP = `
It needs the database and the keys, not the admin API: run it with the environment of the workers, while they run.

1. Make a key: openssl rand -base64 32
2. Put it after the key in use, MUSTER_ENCRYPTION_KEYS=old:…,new:…, and restart every api and worker: now all can read it.
3. Put it first, MUSTER_ENCRYPTION_KEYS=new:…,old:…, and restart them again: now all encrypt with it.
4. muster rotate-keys
5. When it says that you may remove the other keys, remove them.

Exit code 1: a token needs a key that is missing, or a process still encrypts with an older key.`;

const COLUMNS: Columns<UnreadableToken> = {
  environment: ({ environment }) => environment,
  company: ({ companyId }) => companyId,
  token: ({ table, field }) => `${table}.${field}`,
  key: ({ key }) => key,
  problem: ({ reason }) => (reason === 'missing_key' ? 'the key is missing' : 'damaged'),
};

export function registerRotateKeys(program: Command): void {
  program
    .command('rotate-keys')
    .description('encrypt every stored token again with the first key of MUSTER_ENCRYPTION_KEYS, while workers run')
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', HELP)
    .action(async ({ json }: { json?: boolean }) => {
      const config = loadConfig(process.env);
      const { rotateStoredKeys } = await import('../../maintenance.js');
      const { createLogger } = await import('../../observability/logger.js');
      const rotation = await rotateStoredKeys(config, createLogger({ level: config.logLevel, format: config.logFormat }));
      for (const line of json ? jsonLines(rotation) : textLines(rotation)) console.log(line);
      if (rotation.unreadable.length > 0)
        throw new CommandFailure('Some tokens could not be read: keep every key, put the missing keys back, and run this again.');
      if (rotation.behind > 0)
        throw new CommandFailure(
          'A running process encrypts with an older key: put the new key first everywhere, restart, and run this again.',
        );
    });
}

function jsonLines({ rotated, behind, unreadable }: Rotation): string[] {
  const tokens = unreadable.map(({ environment, companyId, table, field, key, reason }) => {
    return { environment, company_id: companyId, table, field, key, reason };
  });
  return [{ rotated, behind, unreadable: tokens.length }, ...tokens].map((line) => JSON.stringify(line));
}

function textLines({ rotated, behind, unreadable }: Rotation): string[] {
  const done = `Tokens encrypted again: ${rotated}.`;
  if (unreadable.length > 0) return [done, `Not readable: ${unreadable.length}`, ...tableLines(unreadable, COLUMNS)];
  return [behind > 0 ? done : `${done} Every stored token needs only the first key; you may remove the other keys.`];
}
