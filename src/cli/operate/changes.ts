import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import type { z } from 'zod';
import type { Change as ChangeModel, ChangesPageModel } from '../../api/feed/changes.js';
import { UsageFailure } from '../exit-code.js';
import { COMPANY, type Columns, members, print, time } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import {
  type CompanyOptions,
  companyOption,
  environmentOption,
  limitOption,
  noneOf,
  type OperatorOptions,
  operatorCommand,
  refuse,
  resourceOption,
} from './operator-command.js';

const HELP = `
For people the newest changes come first. With --after, --feed or --json they come in the order of the feed, as a program needs them: it passes the seq of
the last change to --after, and misses none.`;

interface ChangesOptions extends OperatorOptions, Partial<CompanyOptions> {
  readonly after?: string;
  readonly resource?: string;
  readonly id?: string;
  readonly feed?: string;
  readonly tail?: boolean;
  readonly limit?: number;
}

type Change = z.output<typeof ChangeModel>;
type Filter = Readonly<Record<'resource' | 'environment' | 'company_id' | 'id', string | undefined>>;

/** Changes that --tail shows before it follows. */
const TAIL = 10;
/** How often --tail looks for new changes. */
const LOOK_MS = 2_000;

export function registerChanges(program: Command): void {
  operatorCommand(program, 'changes', 'show what changed, newest first; or read the change feed with --after')
    .option('--after <seq>', 'only changes after this one, in the order of the feed', parseSeq)
    .addOption(environmentOption())
    .addOption(companyOption())
    .addOption(resourceOption('only changes of this list'))
    .option('--id <id>', 'only changes of this record')
    .option('--feed <id>', 'the feed of --after: refuse to read another feed, for example of a restored database')
    .option('--tail', 'show the newest changes, and then each new one until you stop the command')
    .addOption(limitOption(10_000))
    .addHelpText('after', HELP)
    .action(async ({ after, resource, id, environment, company, feed, tail, limit, ...options }: ChangesOptions) => {
      const client = openAdminClient(options);
      const filter: Filter = { resource, environment, company_id: company, id };
      if (tail) {
        if (after !== undefined || feed !== undefined)
          throw new UsageFailure('--tail begins with the newest changes: leave out --after and --feed.');
        return follow(client, filter, limit ?? TAIL, options);
      }
      if (after === undefined && feed === undefined && !options.json) return printNewest(client, filter, limit ?? 100, options);
      return printOnwards(client, { ...filter, feed }, { after: after ?? '0', limit: limit ?? 1000 }, options);
    });
}

const NDJSON = 'application/x-ndjson';

async function printOnwards(
  client: AdminClient,
  filter: Filter & { readonly feed: string | undefined },
  { after, limit }: { readonly after: string; readonly limit: number },
  options: OperatorOptions,
): Promise<void> {
  const read = (from: string, count: number) => client.getText('/api/changes', { after: from, ...filter, limit: count }, NDJSON);
  const text = await read(after, limit);
  const last = printLines(text, options, noChanges(filter, after));
  if (last !== undefined && (await read(String(last), 1)) !== '')
    console.error(`More changes follow: continue with --after ${last}.`);
}

/** Programs get the lines unchanged: parsing and serializing them would lose digits of numbers. Returns the last number. */
function printLines(text: string, options: OperatorOptions, none?: string): number | undefined {
  const changes = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Change);
  if (options.json) process.stdout.write(text);
  else print(changes, COLUMNS, options, none);
  return changes.at(-1)?.seq;
}

/** The newest changes, newest first. A page that searched in vain is followed by the next one. */
async function readNewest(client: AdminClient, filter: Filter, limit: number): Promise<ChangesPageModel> {
  const data: Change[] = [];
  for (let before: number | undefined; ; ) {
    const query = { ...filter, order: 'newest', before, limit: limit - data.length };
    const page = await client.get<ChangesPageModel>('/api/changes', query);
    data.push(...page.data);
    before = page.next_before ?? undefined;
    if (before === undefined || data.length >= limit) return { ...page, data };
  }
}

async function printNewest(client: AdminClient, filter: Filter, limit: number, options: OperatorOptions): Promise<void> {
  const { data, next_before } = await readNewest(client, filter, limit);
  print(data, COLUMNS, options, noChanges(filter));
  if (next_before != null) console.error('Older changes follow: see more with --limit.');
}

async function follow(client: AdminClient, filter: Filter, limit: number, options: OperatorOptions): Promise<void> {
  const { data, next_after } = await readNewest(client, filter, limit);
  // The lines of programs keep every digit, which parsed changes do not: these begin with the oldest of the newest changes.
  let after = next_after;
  if (!options.json) print(data.toReversed(), COLUMNS, options, noChanges(filter));
  else if (data.length > 0)
    after = Math.max(after, printLines(await linesAfter(client, filter, data.at(-1)!.seq - 1), options) ?? 0);
  for (;;) {
    await setTimeout(LOOK_MS);
    const text = await linesAfter(client, filter, after);
    if (text !== '') after = printLines(text, options) ?? after;
  }
}

function noChanges({ resource, environment, company_id, id }: Filter, after = '0'): string {
  return noneOf('changes', after !== '0' || [resource, environment, company_id, id].some((value) => value !== undefined));
}

function linesAfter(client: AdminClient, filter: Filter, after: number): Promise<string> {
  return client.getText('/api/changes', { after, ...filter, limit: 1000 }, NDJSON);
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
