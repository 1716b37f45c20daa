import { type Command, Option } from 'commander';
import type { z } from 'zod';
import { Hold } from '../api/holds.js';
import { environmentOption, idCommand, listCommand } from './operator-command.js';
import { COMPANY, type Columns, members, print, time } from './table.js';

export type HoldModel = z.output<typeof Hold>;

export function registerHolds(program: Command): void {
  const holds = program.command('holds').description('list deletions that were held back, and decide on them');
  const status = new Option('--status <status>', 'only those of this status').choices(Hold.shape.status.options);
  listCommand(holds, 'list them, newest first', [environmentOption(), status], { path: '/api/holds', columns: COLUMNS });
  for (const [verb, what] of [
    ['approve', 'mark the rows deleted that the newest verified walk lacked'],
    ['reject', 'keep the rows'],
  ] as const) {
    idCommand(holds, verb, what, async (client, id, options) =>
      print([await client.post<HoldModel>(`/api/holds/${id}/${verb}`)], COLUMNS, options),
    );
  }
}

const COLUMNS: Columns<HoldModel> = {
  HOLD: ({ id }) => id,
  OPENED: ({ opened_at }) => time(opened_at),
  ...COMPANY,
  ...members('resource'),
  'WOULD GO': ({ count }) => count,
  ...members('living', 'status'),
};
