import { type Command, Option } from 'commander';
import type { RunModel } from '../../api/runs/run-model.js';
import type { QueuedModel, SyncPreviewModel } from '../../api/runs/syncs.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { members, print, withFilled } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import {
  askingFirst,
  type CompanyOptions,
  companyOption,
  companyPath,
  confirm,
  environmentOption,
  type OperatorOptions,
  operatorCommand,
} from './operator-command.js';
import { printRun } from './runs.js';
import { watchRun } from './watch-run.js';

interface SyncOptions extends OperatorOptions, Partial<CompanyOptions> {
  readonly resources?: string[];
  readonly mode?: 'resume' | 'full';
  readonly failed?: boolean;
  readonly issue?: string;
  readonly wait?: boolean;
  readonly yes?: boolean;
}

/** More companies than this are asked for first, on the pages, too. */
const MOST_UNASKED = 20;

export function registerSync(program: Command): void {
  const mode = new Option('--mode <mode>', 'continue from the last checkpoints (the default), or read everything again');
  askingFirst(operatorCommand(program, 'sync', 'sync a company now, or, without --company, every active company'))
    .addOption(environmentOption())
    .addOption(companyOption())
    .option('--resources <names>', 'only these lists, separated by commas', (names) =>
      names.split(',').map((name) => name.trim()),
    )
    .addOption(mode.choices(['resume', 'full']))
    .addOption(new Option('--failed', 'only companies whose last run failed').conflicts(['company', 'issue']))
    .addOption(new Option('--issue <id>', 'the companies of this issue, and its list').conflicts(['company', 'environment']))
    .option('--wait', 'wait until the run has ended; exit code 1 if it did not succeed')
    .action(async (options: SyncOptions) => {
      checkUsage(options);
      const client = openAdminClient(options);
      if (options.company === undefined) await syncMany(client, options);
      else await syncOne(client, options as SyncOptions & CompanyOptions);
    });
}

function checkUsage({ environment, company, mode, wait }: SyncOptions): void {
  if (company !== undefined && environment === undefined)
    throw new UsageFailure('--company needs --environment: the same company may exist in both.');
  if (company === undefined && (mode ?? wait) !== undefined)
    throw new UsageFailure('--mode and --wait are for one company: name it with --environment and --company.');
}

async function syncMany(client: AdminClient, options: SyncOptions): Promise<void> {
  const { environment, failed, issue, resources } = options;
  const filter = { environment, status: failed ? 'failed' : undefined, issue_id: issue };
  await askBefore(client, options, filter);
  const queued = await client.post<QueuedModel>('/api/syncs', { ...filter, resources });
  print([queued], withFilled([queued], members('queued'), { SKIPPED: ({ skipped_count }) => skipped_count }), options);
  if (options.json) return;
  for (const company of queued.skipped ?? [])
    console.error(`skipped: ${company.company_name ?? company.company_id} (${company.environment}): ${company.code}`);
}

/** Names the number of companies. A person who has named an issue or the failed ones is asked only where they are many. */
async function askBefore(
  client: AdminClient,
  { yes, issue, failed, resources }: SyncOptions,
  filter: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  if (yes || !process.stdin.isTTY) return;
  const { companies, resources: lists } = await client.get<SyncPreviewModel>('/api/syncs', filter);
  if ((issue !== undefined || failed) && companies <= MOST_UNASKED) return;
  const of = resources ?? lists;
  const count = `${companies.toLocaleString('en')} ${companies === 1 ? 'company' : 'companies'}`;
  await confirm(`Sync ${count}${of ? ` (${of.join(', ')})` : ''}?`, yes, 'No sync was requested.');
}

async function syncOne(client: AdminClient, options: SyncOptions & CompanyOptions): Promise<void> {
  const { resources, mode, wait } = options;
  let { run } = await client.post<{ run: RunModel }>(`${companyPath(options)}/sync`, { resources, mode });
  if (wait) run = await watchRun(client, run, options);
  await printRun(client, run, options);
  if (wait) requireSuccess(run);
}

export function requireSuccess({ status }: RunModel): void {
  if (status !== 'succeeded') throw new CommandFailure(`The run ${status === 'failed' ? 'failed' : 'was cancelled'}.`);
}
