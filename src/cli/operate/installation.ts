import { type Command, Option } from 'commander';
import type { InstallationModel } from '../../api/operation/installation.js';
import { type Columns, print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { type OperatorOptions, operatorCommand } from './operator-command.js';

interface AdoptOptions extends OperatorOptions {
  readonly feed: 'new' | 'same';
}

/** With these commands a person says whether a restored or copied database is the installation or a copy. */
export function registerInstallation(program: Command): void {
  operatorCommand(program, 'adopt', 'declare that this restored or moved database is the installation from now on')
    .addOption(
      new Option(
        '--feed <which>',
        'new: readers of the change feed start again; same: a planned move in which no change was lost',
      )
        .choices(['new', 'same'])
        .default('new'),
    )
    .action(async ({ feed, ...options }: AdoptOptions) =>
      print([await openAdminClient(options).post<InstallationModel>('/api/installation/adopt', { feed })], COLUMNS, options),
    );
  operatorCommand(
    program,
    'detach',
    'declare that this database is a copy: delete its tokens, and never call the service',
  ).action(async (options: OperatorOptions) =>
    print([await openAdminClient(options).post<InstallationModel>('/api/installation/detach')], COLUMNS, options),
  );
}

const COLUMNS: Columns<InstallationModel> = {
  STANDING: ({ standing }) => standing,
  FEED: ({ feed }) => feed ?? '',
};
