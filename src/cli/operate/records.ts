import { text as textOfStream } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { FoundRecordModel, RecordModel, VersionModel } from '../../api/companies/records.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { type Columns, members, print } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import { type CompanyOptions, companyCommand, companyPath, limitOption, resourceOption } from './operator-command.js';

const HELP = `
TEXT is an id, the beginning of one, or words of the record, without case and diacritics; - reads it from standard input, since every user of the machine
can see the arguments of a process.
  muster records --environment production --company … "anna berg"
  muster records --environment production --company … --resource employees --id 1017

With --id the command prints one record and its history, newest first. Each call is in the audit.`;

interface RecordsOptions extends CompanyOptions {
  readonly resource?: string;
  readonly id?: string;
  readonly limit: number;
}

export function registerRecords(program: Command): void {
  companyCommand(program, 'records', 'find records of a company by number or name, or show one with its history')
    .argument('[text]', 'a number or a name')
    .addOption(resourceOption('the list; all lists unless given'))
    .option('--id <id>', 'show this record of the list')
    .addOption(limitOption(1_000, 50))
    .addHelpText('after', HELP)
    .action(async (text: string | undefined, options: RecordsOptions) => {
      if (options.environment === undefined) throw new UsageFailure('Name the environment with --environment.');
      const client = openAdminClient(options);
      if (options.id === undefined)
        return find(client, text === '-' ? (await textOfStream(process.stdin)).trim() : text, options);
      if (options.resource === undefined) throw new UsageFailure('Name the list of the record with --resource.');
      return show(client, { ...options, resource: options.resource, id: options.id });
    });
}

async function find(client: AdminClient, q: string | undefined, { resource, limit, ...options }: RecordsOptions): Promise<void> {
  const found: FoundRecordModel[] = [];
  let cursor: string | undefined;
  do {
    const query = { resource, q, cursor, limit: Math.min(limit - found.length, 500) };
    const page = await client.get<{ data: FoundRecordModel[]; next_cursor: string | null }>(
      `${companyPath(options)}/records`,
      query,
    );
    found.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && found.length < limit);
  if (found.length === 0) console.error('No living record matches.');
  else print(found, FOUND, options);
  if (cursor !== undefined) console.error('More records may match: see more with --limit.');
}

const FOUND: Columns<FoundRecordModel> = members('label', 'resource', 'id');

async function show(
  client: AdminClient,
  { resource, id, ...options }: RecordsOptions & { readonly resource: string; readonly id: string },
) {
  const record = await client.get<RecordModel>(`${companyPath(options)}/record`, {
    resource,
    id,
    limit: Math.min(options.limit, 100),
  });
  if (options.json) {
    console.log(JSON.stringify(record));
    return;
  }
  const { label, state, forgotten, similar, text, history, next_before } = record;
  const isKnown = state !== 'unknown' || history.length > 0 || forgotten;
  if (!isKnown) throw new CommandFailure(`Nothing was found in ${resource} with this id.${didYouMean(similar)}`);
  console.log(`${label} (${resource} ${id}): ${forgotten ? 'forgotten' : state}`);
  if (text !== null) console.log(text);
  for (const version of history) console.log(textOf(version));
  if (next_before !== null) console.error('Older versions follow: see more with --limit.');
}

/** A line for the version, and one for each member that changed. */
function textOf({ seq, op, changed_at, run_id, kept, changes }: VersionModel): string {
  const lines = changes.map(({ path, before = 'none', after = 'none' }) => `  ${path}: ${before} -> ${after}`);
  const head = `${changed_at} ${op}, number ${seq} of the feed${run_id === null ? '' : `, run ${run_id}`}`;
  return [`${head}${kept ? '' : ' (the feed no longer has both versions)'}`, ...lines].join('\n');
}

/** Names ids that are like one that was not found. */
export function didYouMean(similar: readonly string[]): string {
  return similar.length === 0 ? '' : ` Did you mean ${similar.map((each) => JSON.stringify(each)).join(' or ')}?`;
}
