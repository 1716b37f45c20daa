import { type Command, Option } from 'commander';
import type { HoldModel } from '../api/holds.js';
import { type RunModel, RunStatusName } from '../api/run-model.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import { companyOption, environmentOption, type OperatorOptions, operatorCommand, parseCount } from './operator-command.js';
import { type Columns, print, time } from './table.js';

interface RunsOptions extends OperatorOptions {
  readonly environment?: string;
  readonly company?: string;
  readonly status?: string;
  readonly limit: number;
}

export function registerRuns(program: Command): void {
  const runs = program.command('runs').description('list, show and cancel runs');

  operatorCommand(runs, 'list', 'list runs, newest first (what `muster runs` does by itself)', { isDefault: true })
    .addOption(environmentOption())
    .addOption(companyOption())
    .addOption(new Option('--status <status>', 'only runs of this status').choices(RunStatusName.options))
    .addOption(new Option('--limit <count>', 'how many at most, up to 500').argParser(parseCount).default(20))
    .action(async ({ environment, company, status, limit, ...options }: RunsOptions) => {
      const page = await openAdminClient(options).get<{ data: RunModel[] }>('/api/runs', {
        environment,
        company_id: company,
        status,
        limit,
      });
      print(page.data, RUN_COLUMNS, options);
    });

  operatorCommand(runs, 'show', 'show a run and its walks')
    .argument('<id>', 'id of the run')
    .action(async (id: string, options: OperatorOptions) => {
      const client = openAdminClient(options);
      await printRun(client, await client.get<RunModel>(`/api/runs/${encodeURIComponent(id)}`), options);
    });

  operatorCommand(runs, 'cancel', 'cancel a run')
    .argument('<id>', 'id of the run')
    .action(async (id: string, options: OperatorOptions) => {
      const client = openAdminClient(options);
      await printRun(client, await client.post<RunModel>(`/api/runs/${encodeURIComponent(id)}/cancel`), options);
    });
}

/** Prints a run: one line with --json. For people a table of its walks follows, then errors and held deletions. */
export async function printRun(client: AdminClient, run: RunModel, options: OperatorOptions): Promise<void> {
  print([run], RUN_COLUMNS, options);
  if (options.json) return;
  console.log();
  print(run.walks, WALK_COLUMNS, options);
  const holds = await client.all<HoldModel>('/api/holds', { environment: run.environment, status: 'open' });
  const notes = [
    ...(run.error ? [`${run.error.message} [${run.error.code}]`] : []),
    ...run.walks.flatMap(({ resource, error }) =>
      // A walk that ended with its run carries the run's error.
      error && error.message !== run.error?.message ? [`${resource}: ${error.message} [${error.code}]`] : [],
    ),
    ...holds
      .filter(({ run_id }) => run_id === run.id)
      .map(({ resource, count }) => `${resource}: ${count} deletions are held back: see \`muster holds\`.`),
  ];
  if (notes.length > 0) console.log(`\n${notes.join('\n')}`);
}

const RUN_COLUMNS: Columns<RunModel> = {
  RUN: ({ id }) => id,
  ENVIRONMENT: ({ environment }) => environment,
  COMPANY: ({ company_id }) => company_id,
  TRIGGER: ({ trigger }) => trigger,
  STATUS: ({ status }) => status,
  STARTED: ({ started_at }) => time(started_at),
  FINISHED: ({ finished_at }) => time(finished_at),
  VERIFIED: ({ walks }) => `${walks.filter(({ verified }) => verified).length} of ${walks.length}`,
};

const WALK_COLUMNS: Columns<RunModel['walks'][number]> = {
  RESOURCE: ({ resource }) => resource,
  STATUS: ({ status }) => status,
  PAGES: ({ pages }) => pages,
  RECEIVED: ({ received }) => received,
  INSERTED: ({ inserted }) => inserted,
  UPDATED: ({ updated }) => updated,
  UNCHANGED: ({ unchanged }) => unchanged,
  DELETED: ({ deleted }) => deleted,
  TOTAL: ({ total_records }) => total_records,
  VERIFIED: ({ verified, proof, unverified_reason, error }) => (verified ? (proof ?? 'yes') : (unverified_reason ?? error?.code)),
};
