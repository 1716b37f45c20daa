import type { Command } from 'commander';
import type { QueueModel } from '../../api/operation/queue.js';
import { type Columns, members, print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { type OperatorOptions, operatorCommand } from './operator-command.js';

export function registerQueue(program: Command): void {
  operatorCommand(program, 'queue', 'show the jobs of each queue').action(async (options: OperatorOptions) => {
    const { data } = await openAdminClient(options).get<{ data: QueueModel[] }>('/api/queue');
    print(data, COLUMNS, options);
  });
}

const COLUMNS: Columns<QueueModel> = {
  ...members('queue', 'environment', 'waiting', 'active', 'delayed', 'failed'),
  'OLDEST WAITS': ({ oldest_waiting_seconds: seconds }) => (seconds === null ? undefined : `${seconds} s`),
};
