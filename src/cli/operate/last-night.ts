import { type Command, Option } from 'commander';
import type { LastNightModel, UnprovedListModel } from '../../api/operation/last-night.js';
import { COMPANY, type Columns, members, print, time } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { environmentOption, type OperatorOptions, operatorCommand } from './operator-command.js';

const STATES = ['reauthorization_required', 'failed', 'held', 'never', 'late', 'on_time'];

interface LastNightOptions extends OperatorOptions {
  readonly environment?: string;
  readonly state?: string;
}

/** `--json` prints the lists; without it a sentence that answers comes first. */
export function registerLastNight(program: Command): void {
  operatorCommand(program, 'last-night', 'say whether the newest night is complete, and which lists lack a proof')
    .addOption(environmentOption())
    .addOption(new Option('--state <state>', 'only lists in this state').choices(STATES))
    .action(async ({ environment, state, ...options }: LastNightOptions) => {
      const client = openAdminClient(options);
      if (!options.json) console.log(lastNightText(await client.get<LastNightModel>('/api/last-night', { environment })));
      const lists = await client.list<UnprovedListModel>('/api/unproved', { environment, state });
      if (options.json || lists.length > 0) print(lists, COLUMNS, options);
    });
}

/** Answers whether the newest night is complete. */
export function lastNightText({ lists: { due, proved }, lacking, under_way, next_at }: LastNightModel): string {
  const next = `The next night begins at ${time(next_at)}.`;
  if (due === 0) return `No night has begun since the first company was connected. ${next}`;
  const counts = `${proved} of ${due} lists were proved`;
  if (proved >= due) return `Last night is complete: ${counts}. ${next}`;
  if (under_way) return `Last night is under way: ${counts}.`;
  return `Last night is not complete: ${counts}; ${lacking.map(({ state, lists }) => `${lists} ${state}`).join(', ')}. ${next}`;
}

const COLUMNS: Columns<UnprovedListModel> = {
  ...COMPANY,
  ...members('resource', 'state'),
  SINCE: ({ since }) => time(since),
  REASON: ({ reason }) => reason,
  'LAST PROOF': ({ last_verified_at }) => time(last_verified_at),
};
