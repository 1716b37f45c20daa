import { type Command, Option } from 'commander';
import { type IssueModel, IssueStatusName } from '../../api/operation/issues.js';
import { callsAsCommands, commandOfAction } from '../calls-as-commands.js';
import { type Columns, members, print, time, withFilled } from '../table.js';
import { openAdminClient } from './admin-client.js';
import {
  environmentOption,
  idCommand,
  limitOption,
  listCommand,
  type OperatorOptions,
  operatorCommand,
  refuse,
} from './operator-command.js';

export function registerIssues(program: Command): void {
  const issues = program.command('issues').description('list what a person should see, grouped by cause, and what to do');
  const status = new Option('--status <status>', 'only issues of this status')
    .choices(IssueStatusName.options)
    .default('ongoing');
  const snoozed = new Option(
    '--snoozed <which>',
    'only issues that are snoozed (true), or only those that are not (false)',
  ).choices(['true', 'false']);
  const filters = [environmentOption(), status, snoozed, limitOption(500, 100)];
  listCommand(issues, 'list them, newest first', filters, { path: '/api/issues', columns: COLUMNS, rare: RARE });
  idCommand(issues, 'show', 'show an issue and what to do about it', async (client, id, options) =>
    printIssue(await client.get<IssueModel>(`/api/issues/${id}`), options),
  );
  operatorCommand(issues, 'snooze', 'put an issue away until a time; it comes back sooner when it grows')
    .argument('<id>', 'id of the issue')
    .requiredOption('--until <time>', 'a number of days (3d) or hours (12h), or a time such as 2026-12-01T08:00:00Z', parseUntil)
    .requiredOption('--reason <text>', 'why, for the others who look and for the audit')
    .action(async (id: string, { until, reason, ...options }: SnoozeOptions) => {
      const path = `/api/issues/${encodeURIComponent(id)}/snooze`;
      print([await openAdminClient(options).post<IssueModel>(path, { until, reason })], { ...COLUMNS, ...RARE }, options);
    });
  idCommand(issues, 'unsnooze', 'end the snooze of an issue', async (client, id, options) =>
    print([await client.post<IssueModel>(`/api/issues/${id}/unsnooze`)], COLUMNS, options),
  );
}

interface SnoozeOptions extends OperatorOptions {
  readonly until: string;
  readonly reason: string;
}

const UNIT_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000 };

/** The time as the API takes it. */
function parseUntil(text: string): string {
  const [, count, unit = ''] = /^([1-9]\d{0,3})([dh])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(Date.now() + Number(count) * UNIT_MS[unit]!).toISOString();
  return Number.isNaN(Date.parse(text))
    ? refuse('It must be like 3d, 12h or 2026-12-01T08:00:00Z.')
    : new Date(text).toISOString();
}

/** Prints an issue: with --json one line, otherwise also the advice and the command that deals with it. */
function printIssue(issue: IssueModel, options: OperatorOptions): void {
  print([issue], withFilled([issue], COLUMNS, RARE), options);
  if (options.json) return;
  const { advice, docs_url, sample, action, snoozed } = issue;
  if (snoozed) console.log(`\nsnoozed by ${snoozed.by}: ${snoozed.reason}`);
  console.log(`\n${callsAsCommands(advice)}\n${docs_url}`);
  console.log(`\n${commandOfAction(action)}`);
  if (sample.length > 0) console.log(`\nsome of the companies:\n${sample.join('\n')}`);
}

const COLUMNS: Columns<IssueModel> = {
  ISSUE: ({ id }) => id,
  ...members('cause', 'environment', 'resource', 'severity', 'companies'),
  SINCE: ({ first_seen_at }) => time(first_seen_at),
  'LAST SEEN': ({ last_seen_at }) => time(last_seen_at),
  ...members('status'),
};

const RARE: Columns<IssueModel> = {
  LATE: ({ late }) => late,
  'SNOOZED UNTIL': ({ snoozed }) => time(snoozed?.until),
  'TOKEN ANSWERS': ({ token_answers }) => token_answers,
};
