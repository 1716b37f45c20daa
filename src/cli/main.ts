import v8 from 'node:v8';
import { Command } from 'commander';
import { VERSION } from '../core/version.js';
import { registerChanges } from './changes.js';
import { registerCompanies, registerPauseAndResume } from './companies.js';
import { registerConnectLink } from './connect-link.js';
import { exitCodeOf } from './exit-code.js';
import { registerHolds } from './holds.js';
import { registerMigrate } from './migrate.js';
import { registerNotifications } from './notifications.js';
import { registerOnboard } from './onboard.js';
import { registerRekey } from './rekey.js';
import { registerRemove } from './remove.js';
import { registerRoles } from './roles.js';
import { registerRotateKeys } from './rotate-keys.js';
import { registerRuns } from './runs.js';
import { registerSandbox } from './sandbox.js';
import { registerStatus } from './status.js';
import { registerSync } from './sync.js';
import { registerUp } from './up.js';

// Where a machine has much memory, V8 lets the heap grow to four times what is alive before it collects. The flag saves much memory in a
// worker with a giant list, at a price in speed that nobody notices (decision 0012).
v8.setFlagsFromString('--heap-growing-percent=75');

const program = new Command('muster')
  .description(
    'Mirrors company data from an OAuth 2.0 protected HTTP API into PostgreSQL, and proves that each mirror is complete.',
  )
  .version(VERSION)
  .addHelpText('after', '\nExit codes: 0 ok, 1 failed, 2 bad usage or configuration.')
  .showHelpAfterError('(add --help for how it is used)')
  .exitOverride();

// Asked for help on a command that does not exist, commander would show its own help and succeed.
program.on('beforeHelp', () => {
  const unknown = program.args.find((arg) => !arg.startsWith('-') && arg !== 'help');
  if (unknown !== undefined) program.error(`error: unknown command '${unknown}'`);
});

program.commandsGroup('Run Muster:');
for (const register of [registerUp, registerRoles, registerMigrate, registerSandbox]) register(program);
program.commandsGroup('Operate a running Muster:');
for (const register of [registerStatus, registerCompanies, registerOnboard, registerConnectLink]) register(program);
for (const register of [registerSync, registerRuns, registerHolds, registerNotifications]) register(program);
for (const register of [registerPauseAndResume, registerRemove, registerChanges, registerRekey, registerRotateKeys])
  register(program);

// The reader of the output may stop early (`muster runs | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}
