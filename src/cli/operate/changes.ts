import type { Command } from 'commander';
import type { z } from 'zod';
import type { Change as ChangeModel } from '../../api/feed/changes.js';
import { COMPANY, type Columns, members, print, time } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { limitOption, type OperatorOptions, operatorCommand, refuse, resourceOption } from './operator-command.js';

interface ChangesOptions extends OperatorOptions {
  readonly after: string;
  readonly resource?: string;
  readonly feed?: string;
  readonly limit: number;
}

type Change = z.output<typeof ChangeModel>;

export function registerChanges(program: Command): void {
  operatorCommand(program, 'changes', 'read the change feed; continue with --after and the seq of the last change')
    .option('--after <seq>', 'only changes after this one', parseSeq, '0')
    .addOption(resourceOption('only changes of this resource'))
    .option('--feed <id>', 'the feed of --after: refuse to read another feed, for example of a restored database')
    .addOption(limitOption(10_000, 1000))
    .action(async ({ after, resource, feed, limit, ...options }: ChangesOptions) => {
      const client = openAdminClient(options);
      const read = (from: string, count: number) =>
        client.getText('/api/changes', { after: from, resource, feed, limit: count }, 'application/x-ndjson');
      const text = await read(after, limit);
      const lines = text.split('\n').filter(Boolean);
      const changes = lines.map((line) => JSON.parse(line) as Change);
      // Programs get the lines unchanged: parsing and serializing them would lose digits of numbers.
      if (options.json) process.stdout.write(text);
      else print(changes, COLUMNS, options, 'No changes match.');
      const last = changes.at(-1)?.seq;
      if (last !== undefined && (await read(String(last), 1)) !== '')
        console.error(`More changes follow: continue with --after ${last}.`);
    });
}

const COLUMNS: Columns<Change> = {
  ...members('seq'),
  CHANGED: ({ changed_at }) => time(changed_at),
  ...members('op', 'resource'),
  ...COMPANY,
  ...members('id'),
};

export function parseSeq(text: string): string {
  return /^\d{1,18}$/.test(text) ? text : refuse('It must be a seq of the feed, or 0.');
}
