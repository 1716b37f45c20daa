import { type Command, Option } from 'commander';
import { failureLine, failureOf } from '../../api/runs/run-failure.js';
import { type RunModel, RunStatusName } from '../../api/runs/run-model.js';
import { RUN_TRIGGERS } from '../../db/tables/runs.js';
import { callsAsCommands } from '../calls-as-commands.js';
import { COMPANY, type Columns, members, print, spare, time } from '../table.js';
import { plain } from '../terminal.js';
import type { AdminClient } from './admin-client.js';
import type { HoldModel } from './holds.js';
import {
  companyOption,
  environmentOption,
  idCommand,
  limitOption,
  listCommand,
  type OperatorOptions,
} from './operator-command.js';
import { waitText } from './watch-run.js';

export function registerRuns(program: Command): void {
  const runs = program.command('runs').description('list, show and cancel runs');
  const status = new Option('--status <status>', 'only runs with this status').choices(RunStatusName.options);
  const filters = [
    environmentOption(),
    companyOption(),
    status,
    new Option('--trigger <trigger>', 'only runs with this reason').choices(RUN_TRIGGERS),
    new Option('--resource <list>', 'only runs of this list'),
    new Option('--day <day>', 'only runs that were asked for on this day (SYNC_TIMEZONE), such as 2026-11-24'),
    limitOption(500, 20),
  ];
  listCommand(runs, 'list runs, newest first', filters, { path: '/api/runs', columns: RUN_COLUMNS });
  idCommand(runs, 'show', 'show a run and its walks', async (client, id, options) =>
    printRun(client, await client.get<RunModel>(`/api/runs/${id}`), options),
  );
  idCommand(runs, 'cancel', 'cancel a run', async (client, id, options) =>
    printRun(client, await client.post<RunModel>(`/api/runs/${id}/cancel`), options),
  );
}

/** Prints a run, with --json as one line. For people, a table of its walks, errors and held deletions follow. */
export async function printRun(client: AdminClient, run: RunModel, options: OperatorOptions): Promise<void> {
  print([run], RUN_COLUMNS, options);
  if (options.json) return;
  console.log();
  if (run.kind === 'verify') print(run.walks, READING_COLUMNS, options, 'It has no lists yet.');
  else print(run.walks, WALK_COLUMNS, options, 'It has no lists yet.');
  const holds = await client.list<HoldModel>('/api/holds', { environment: run.environment, status: 'open' });
  const notes = [
    ...run.walks.flatMap(({ resource, verify }) =>
      verify?.as_of === null ? [`${resource}: never proved, so there is no proof to compare with.`] : [],
    ),
    ...run.walks.flatMap(({ resource, verify, unverified_detail: detail }) => [
      ...(detail === undefined ? [] : [`${resource}: ${detail}`]),
      ...(verify?.contradiction === undefined ? [] : [`${resource} may go on after its supposed end: ${verify.contradiction}.`]),
    ]),
    ...run.walks.flatMap(({ resource, verify }) =>
      (verify?.sample ?? []).map(
        ({ id, kind, members: names = [] }) => `${resource} ${id}: ${[kind, names.join(', ')].filter(Boolean).join(' in ')}`,
      ),
    ),
    ...(run.waits_until ? [`It waits for the end of the quiet hours at ${time(run.waits_until)}.`] : []),
    ...(run.retry_at && !run.waits_until ? [`It tries again at ${time(run.retry_at)}.`] : []),
    ...(run.error ? [`${run.error.message} [${run.error.code}]`] : []),
    ...run.walks.flatMap(({ resource, error }) =>
      // A walk that ended with its run has the run's error.
      error && error.message !== run.error?.message ? [`${resource}: ${error.message} [${error.code}]`] : [],
    ),
    ...run.walks.flatMap(({ resource, service_says: says }) =>
      says === undefined ? [] : [`${resource}: the service says: ${says}`],
    ),
    ...holds
      .filter(({ run_id }) => run_id === run.id)
      .map(({ resource, count }) => `${resource}: ${count} deletions are held back: see \`muster holds\`.`),
  ];
  if (notes.length > 0) console.log(`\n${notes.map(callsAsCommands).map(plain).join('\n')}`);
}

type Reading = RunModel['walks'][number]['verify'];

const RUN_COLUMNS: Columns<RunModel> = {
  RUN: ({ id }) => id,
  ...COMPANY,
  ...spare(members('trigger')),
  ...members('status'),
  REASON: reasonOf,
  STARTED: ({ started_at }) => time(started_at),
  ...spare({
    FINISHED: ({ finished_at }: RunModel) => time(finished_at),
    VERIFIED: ({ kind, walks }: RunModel) =>
      kind === 'verify' ? undefined : `${walks.filter(({ verified }) => verified).length} of ${walks.length}`,
  }),
};

/** Why a run failed or waits, with the first list that failed; of one that goes on, how far it is. */
function reasonOf(run: RunModel): string | undefined {
  if (run.waits_until) return waitText(run);
  const failure = failureOf(run);
  if (failure) return failureLine(failure);
  const percent = run.progress?.percent;
  return typeof percent === 'number' ? `${percent} % read` : undefined;
}

/** The counts of a verification read, unless its list was never proved: then they mean nothing. */
function judged(found: Reading): Reading {
  return found?.as_of === null ? undefined : found;
}

const READING_COLUMNS: Columns<RunModel['walks'][number]> = {
  ...members('resource', 'status'),
  COMPARED: ({ verify }) => verify?.compared,
  MISSING: ({ verify }) => judged(verify)?.missing,
  EXTRA: ({ verify }) => judged(verify)?.extra,
  DIFFERENT: ({ verify }) => judged(verify)?.different,
  'CHANGED SINCE': ({ verify }) => judged(verify)?.changed_since,
};

const WALK_COLUMNS: Columns<RunModel['walks'][number]> = {
  ...members('resource', 'status'),
  ...spare(members('pages')),
  ...members('received', 'inserted', 'updated'),
  ...spare(members('unchanged')),
  ...members('deleted'),
  TOTAL: ({ total_records }) => total_records,
  VERIFIED: ({ verified, proof, unverified_reason, error }) => (verified ? (proof ?? 'yes') : (unverified_reason ?? error?.code)),
};
