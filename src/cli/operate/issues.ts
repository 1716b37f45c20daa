import { type Command, Option } from 'commander';
import { type IssueModel, IssueStatusName } from '../../api/operation/issues.js';
import { callsAsCommands, commandOfAction } from '../calls-as-commands.js';
import { type Columns, members, print, time } from '../table.js';
import { environmentOption, idCommand, limitOption, listCommand, type OperatorOptions } from './operator-command.js';

export function registerIssues(program: Command): void {
  const issues = program.command('issues').description('list what a person should see, grouped by cause, and what to do');
  const status = new Option('--status <status>', 'only issues of this status')
    .choices(IssueStatusName.options)
    .default('ongoing');
  const filters = [environmentOption(), status, limitOption(500, 100)];
  listCommand(issues, 'list them, newest first', filters, { path: '/api/issues', columns: COLUMNS, rare: RARE });
  idCommand(issues, 'show', 'show an issue and what to do about it', async (client, id, options) =>
    printIssue(await client.get<IssueModel>(`/api/issues/${id}`), options),
  );
}

/** Prints an issue: with --json one line, otherwise also the advice and the command that deals with it. */
function printIssue(issue: IssueModel, options: OperatorOptions): void {
  print([issue], issue.token_answers === undefined ? COLUMNS : { ...COLUMNS, ...RARE }, options);
  if (options.json) return;
  const { advice, docs_url, sample, action } = issue;
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

const RARE: Columns<IssueModel> = { 'TOKEN ANSWERS': ({ token_answers }) => token_answers };
