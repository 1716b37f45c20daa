import { type Command, Option } from 'commander';
import type { RunModel } from '../../api/runs/run-model.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { members, print } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import {
  type CompanyOptions,
  companyOption,
  companyPath,
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
  readonly wait?: boolean;
}

export function registerSync(program: Command): void {
  const mode = new Option('--mode <mode>', 'continue from the last checkpoints (the default), or read everything again');
  operatorCommand(program, 'sync', 'sync a company now, or, without --company, every active company')
    .addOption(environmentOption())
    .addOption(companyOption())
    .option('--resources <names>', 'only these lists, separated by commas', (names) =>
      names.split(',').map((name) => name.trim()),
    )
    .addOption(mode.choices(['resume', 'full']))
    .addOption(new Option('--failed', 'only companies whose last run failed').conflicts('company'))
    .option('--wait', 'wait until the run has ended; exit code 1 if it did not succeed')
    .action(async (options: SyncOptions) => {
      checkUsage(options);
      const client = openAdminClient(options);
      if (options.company === undefined) await syncMany(client, options);
      else await syncOne(client, options as SyncOptions & CompanyOptions);
    });
}

function checkUsage({ environment, company, resources, mode, wait }: SyncOptions): void {
  if (company !== undefined && environment === undefined)
    throw new UsageFailure('--company needs --environment: the same company may exist in both.');
  if (company === undefined && (resources ?? mode ?? wait) !== undefined)
    throw new UsageFailure('--resources, --mode and --wait are for one company: name it with --environment and --company.');
}

async function syncMany(client: AdminClient, options: SyncOptions): Promise<void> {
  const { environment, failed } = options;
  const queued = await client.post<{ queued: number }>('/api/syncs', { environment, status: failed ? 'failed' : undefined });
  print([queued], members('queued'), options);
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
