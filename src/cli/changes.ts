import { type Command, InvalidArgumentError, Option } from 'commander';
import { openAdminClient } from './admin-client.js';
import { type OperatorOptions, operatorCommand, parseCount } from './operator-command.js';
import { type Columns, print, time } from './table.js';

interface ChangesOptions extends OperatorOptions {
  readonly after: string;
  readonly resource?: string;
  readonly limit: number;
}

interface Change {
  readonly seq: number;
  readonly changed_at: string;
  readonly op: string;
  readonly resource: string;
  readonly environment: string;
  readonly company_id: string;
  readonly id: string;
}

export function registerChanges(program: Command): void {
  operatorCommand(program, 'changes', 'read the change feed; go on with --after and the seq of the last change')
    .addOption(new Option('--after <seq>', 'only changes after this one').argParser(parseSeq).default('0'))
    .option('--resource <name>', 'only changes of this resource')
    .addOption(new Option('--limit <count>', 'how many at most, up to 10000').argParser(parseCount).default(1000))
    .action(async ({ after, resource, limit, ...options }: ChangesOptions) => {
      const client = openAdminClient(options);
      const read = (from: string, count: number) =>
        client.getText('/api/changes', { after: from, resource, limit: count }, 'application/x-ndjson');
      const text = await read(after, limit);
      const changes = text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Change);
      // Programs get the lines as they came: read and written again, their numbers would lose digits.
      if (options.json) process.stdout.write(text);
      else print(changes, COLUMNS, options);
      const last = changes.at(-1)?.seq;
      if (last !== undefined && (await read(String(last), 1)) !== '')
        console.error(`More changes follow: go on with --after ${last}.`);
    });
}

const COLUMNS: Columns<Change> = {
  SEQ: ({ seq }) => seq,
  CHANGED: ({ changed_at }) => time(changed_at),
  OP: ({ op }) => op,
  RESOURCE: ({ resource }) => resource,
  ENVIRONMENT: ({ environment }) => environment,
  COMPANY: ({ company_id }) => company_id,
  ID: ({ id }) => id,
};

function parseSeq(text: string): string {
  if (!/^\d{1,18}$/.test(text)) throw new InvalidArgumentError('It must be a seq of the feed, or 0.');
  return text;
}
