import { type Command, Option } from 'commander';
import type { z } from 'zod';
import { Hold } from '../api/holds.js';
import { openAdminClient } from './admin-client.js';
import { companyOption, environmentOption, listCommand, type OperatorOptions, operatorCommand } from './operator-command.js';
import { COMPANY, type Columns, members, print, time } from './table.js';

export type HoldModel = z.output<typeof Hold>;

interface DecisionOptions extends OperatorOptions {
  readonly reason?: string;
}

export function registerHolds(program: Command): void {
  const holds = program.command('holds').description('list deletions that were held back, and decide on them');
  const status = new Option('--status <status>', 'only those of this status').choices(Hold.shape.status.options);
  listCommand(holds, 'list them, newest first', [environmentOption(), companyOption(), status], {
    path: '/api/holds',
    columns: COLUMNS,
  });
  for (const [verb, what] of [
    ['approve', 'mark the rows deleted that the newest verified walk lacked'],
    ['reject', 'keep the rows'],
  ] as const) {
    operatorCommand(holds, verb, what)
      .argument('<id>', 'id of the hold')
      .option('--reason <text>', 'why; the audit keeps it')
      .action(async (id: string, { reason, ...options }: DecisionOptions) => {
        const path = `/api/holds/${encodeURIComponent(id)}/${verb}`;
        const body = reason === undefined ? undefined : { reason };
        print([await openAdminClient(options).post<HoldModel>(path, body)], COLUMNS, options);
      });
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
