import type { Command } from 'commander';
import type { z } from 'zod';
import type { Barrier as BarrierModel } from '../../api/feed/barriers.js';
import { COMPANY, type Columns, members, print, time } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { parseSeq } from './changes.js';
import { limitOption, type OperatorOptions, operatorCommand, resourceOption } from './operator-command.js';

interface BarriersOptions extends OperatorOptions {
  readonly after: string;
  readonly resource?: string;
  readonly limit: number;
}

type Barrier = z.output<typeof BarrierModel>;

export function registerBarriers(program: Command): void {
  operatorCommand(program, 'barriers', 'show the places in the change feed at which lists are complete')
    .option('--after <number>', 'only barriers after this one', parseSeq, '0')
    .addOption(resourceOption('only barriers of this resource'))
    .addOption(limitOption(10_000, 1000))
    .action(async ({ after, resource, limit, ...options }: BarriersOptions) => {
      const client = openAdminClient(options);
      const read = (from: string | number, count: number) =>
        client.get<{ data: Barrier[]; next_after: number }>('/api/barriers', { after: from, resource, limit: count });
      const { data, next_after: last } = await read(after, limit);
      print(data, COLUMNS, options, 'No barriers match.');
      if ((await read(last, 1)).next_after !== last) console.error(`More barriers follow: continue with --after ${last}.`);
    });
}

const COLUMNS: Columns<Barrier> = {
  ...members('number', 'resource'),
  ...COMPANY,
  ...members('seq'),
  VERIFIED: ({ verified_at }) => time(verified_at),
  ...members('records'),
  GRANT: ({ grant_number }) => grant_number,
};
