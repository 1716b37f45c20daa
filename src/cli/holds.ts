import { type Command, Option } from 'commander';
import { Hold, type HoldModel } from '../api/holds.js';
import { openAdminClient } from './admin-client.js';
import { environmentOption, type OperatorOptions, operatorCommand } from './operator-command.js';
import { type Columns, print, time } from './table.js';

interface HoldsOptions extends OperatorOptions {
  readonly environment?: string;
  readonly status?: string;
}

export function registerHolds(program: Command): void {
  const holds = program.command('holds').description('list deletions that were held back, and decide on them');

  operatorCommand(holds, 'list', 'list them, newest first (what `muster holds` does by itself)', { isDefault: true })
    .addOption(environmentOption())
    .addOption(new Option('--status <status>', 'only those of this status').choices(Hold.shape.status.options))
    .action(async ({ environment, status, ...options }: HoldsOptions) => {
      print(await openAdminClient(options).all<HoldModel>('/api/holds', { environment, status }), COLUMNS, options);
    });

  for (const [verb, what] of [
    ['approve', 'mark the rows deleted that the newest verified walk lacked'],
    ['reject', 'keep the rows'],
  ] as const) {
    operatorCommand(holds, verb, what)
      .argument('<id>', 'id of the hold')
      .action(async (id: string, options: OperatorOptions) => {
        print([await openAdminClient(options).post<HoldModel>(`/api/holds/${encodeURIComponent(id)}/${verb}`)], COLUMNS, options);
      });
  }
}

const COLUMNS: Columns<HoldModel> = {
  HOLD: ({ id }) => id,
  OPENED: ({ opened_at }) => time(opened_at),
  ENVIRONMENT: ({ environment }) => environment,
  COMPANY: ({ company_id }) => company_id,
  RESOURCE: ({ resource }) => resource,
  'WOULD GO': ({ count }) => count,
  LIVING: ({ living }) => living,
  STATUS: ({ status }) => status,
};
