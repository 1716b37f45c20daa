import v8 from 'node:v8';
import { Command } from 'commander';
import { VERSION } from '../core/version.js';
import { registerAudit } from './audit.js';
import { registerBarriers } from './barriers.js';
import { registerCertificate } from './certificate.js';
import { registerCertificates } from './certificates.js';
import { registerChanges } from './changes.js';
import { registerCompanies, registerPauseAndResume } from './companies.js';
import { registerCompletion } from './completion.js';
import { registerConnectLink } from './connect-link.js';
import { registerDbt } from './dbt.js';
import { registerDiff } from './diff.js';
import { registerDoctor } from './doctor.js';
import { exitCodeOf } from './exit-code.js';
import { registerExport } from './export.js';
import { registerForget } from './forget.js';
import { registerHolds } from './holds.js';
import { registerIssues } from './issues.js';
import { registerMarks } from './marks.js';
import { registerMigrate } from './migrate.js';
import { registerNotifications } from './notifications.js';
import { registerOnboard } from './onboard.js';
import { registerPublish } from './publish.js';
import { registerQuarantinedTokens } from './quarantined-tokens.js';
import { registerQueue } from './queue.js';
import { registerRejected } from './rejected.js';
import { registerReleaseTokens } from './release-tokens.js';
import { registerInstallation } from './installation.js';
import { registerRekey } from './rekey.js';
import { registerRestoreTokens } from './restore-tokens.js';
import { registerRemove } from './remove.js';
import { registerRoles } from './roles.js';
import { registerRotateKeys } from './rotate-keys.js';
import { registerRuns } from './runs.js';
import { registerSandbox } from './sandbox.js';
import { registerSchema } from './schema.js';
import { registerStatus } from './status.js';
import { registerSync } from './sync.js';
import { registerTokens } from './tokens.js';
import { registerTry } from './try.js';
import { registerUp } from './up.js';
import { registerVerify } from './verify.js';

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
for (const register of [
  registerUp,
  registerRoles,
  registerMigrate,
  registerPublish,
  registerSandbox,
  registerDbt,
  registerDoctor,
  registerCertificate,
  registerCompletion,
])
  register(program);
program.commandsGroup('Operate a running Muster:');
for (const register of [registerStatus, registerIssues, registerCompanies, registerOnboard, registerConnectLink])
  register(program);
for (const register of [registerSync, registerVerify, registerRuns, registerDiff, registerHolds, registerNotifications])
  register(program);
for (const register of [registerPauseAndResume, registerRemove, registerQuarantinedTokens, registerChanges]) register(program);
for (const register of [registerBarriers, registerCertificates, registerSchema, registerExport, registerTry]) register(program);
for (const register of [registerRejected, registerQueue]) register(program);
for (const register of [
  registerTokens,
  registerAudit,
  registerForget,
  registerMarks,
  registerRekey,
  registerRotateKeys,
  registerInstallation,
  registerRestoreTokens,
  registerReleaseTokens,
])
  register(program);

// The reader of the output may stop early (`muster runs | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

// Node would print the error with all that hangs on it.
process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => process.exit(exitCodeOf(error)));

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}
