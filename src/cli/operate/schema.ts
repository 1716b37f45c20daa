import type { Command } from 'commander';
import type { RebuildModel, SchemaColumnModel } from '../../api/feed/schema.js';
import { type Columns, members, print, spare, time, withFilled } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { type OperatorOptions, operatorCommand } from './operator-command.js';
import { checkResources } from './resolve-names.js';

export function registerSchema(program: Command): void {
  const schema = program.command('schema').description('list the columns of the typed views, and count them again');
  operatorCommand(schema, 'list', 'list the columns (default)', { isDefault: true })
    .argument('[resource]', 'only columns of this list')
    .action(async (resource: string | undefined, options: OperatorOptions) => {
      const client = openAdminClient(options);
      if (resource !== undefined) await checkResources(client, [resource]);
      const columns = await client.list<SchemaColumnModel>('/api/schema', { resource });
      print(columns, withFilled(columns, COLUMNS, RARE), options, 'There are no columns yet.');
    });
  operatorCommand(schema, 'rebuild', 'have a worker count values and misfits in the mirror; names and types stay')
    .argument('[resource]', 'only columns of this list')
    .action(async (resource: string | undefined, options: OperatorOptions) => {
      const { resources } = await openAdminClient(options).post<RebuildModel>('/api/schema/rebuild', { resource });
      const rows = resources.map((name) => ({ resource: name }));
      print(rows, members('resource'), options);
    });
}

function listed(items: readonly string[]): string | undefined {
  return items.length === 0 ? undefined : items.join(', ');
}

const COLUMNS: Columns<SchemaColumnModel> = {
  ...members('resource', 'column', 'type'),
  KEY: ({ path }) => path.map((key) => JSON.stringify(key)).join(' > '),
  ...spare({
    SINCE: ({ first_seen_at }: SchemaColumnModel) => time(first_seen_at),
    'LAST SEEN': ({ last_seen_at }: SchemaColumnModel) => time(last_seen_at),
  }),
  ...members('values'),
  ...spare(members('nulls')),
  ...members('misfits'),
  ...spare({
    FROM: ({ declared }: SchemaColumnModel) => (declared === null ? 'inferred' : `declared ${declared}`),
    ...members('catalogue'),
  }),
};

/** Most lists have none of these. */
const RARE: Columns<SchemaColumnModel> = spare({
  VIEW: ({ resource, view }: SchemaColumnModel) => (view === resource ? undefined : view),
  'OF KIND': ({ misfit_kinds }: SchemaColumnModel) =>
    listed(Object.entries(misfit_kinds).map(([kind, count]) => `${kind} ${count}`)),
  TWINS: ({ twins }: SchemaColumnModel) => listed(twins.map(({ column }) => column)),
});
