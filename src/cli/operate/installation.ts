import { type Command, Option } from 'commander';
import type { InstallationModel } from '../../api/operation/installation.js';
import { type Columns, print } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { type OperatorOptions, operatorCommand } from './operator-command.js';

interface AdoptOptions extends OperatorOptions {
  readonly feed: 'new' | 'same';
}

/** A person says with these commands what a database is that was restored or copied. */
export function registerInstallation(program: Command): void {
  operatorCommand(program, 'adopt', 'say that this database, which was restored or moved, is the installation from now on')
    .addOption(
      new Option('--feed <which>', 'new: readers of the change feed begin anew; same: a planned move in which no change was lost')
        .choices(['new', 'same'])
        .default('new'),
    )
    .action(async ({ feed, ...options }: AdoptOptions) =>
      print([await openAdminClient(options).post<InstallationModel>('/api/installation/adopt', { feed })], COLUMNS, options),
    );
  operatorCommand(
    program,
    'detach',
    'say that this database is a copy: its tokens are deleted, and nothing is asked of the service',
  ).action(async (options: OperatorOptions) =>
    print([await openAdminClient(options).post<InstallationModel>('/api/installation/detach')], COLUMNS, options),
  );
}

const COLUMNS: Columns<InstallationModel> = {
  STANDING: ({ standing }) => standing,
  FEED: ({ feed }) => feed ?? '',
};
