import v8 from 'node:v8';
import { type Argument, Command } from 'commander';
import { VERSION } from '../core/version.js';
import { exitCodeOf } from './exit-code.js';
import { registerCertificate } from './local/certificate.js';
import { registerDbt } from './local/dbt.js';
import { registerDoctor } from './local/doctor.js';
import { registerExport } from './local/export.js';
import { registerMarks } from './local/marks.js';
import { registerMigrate } from './local/migrate.js';
import { registerPublish } from './local/publish.js';
import { registerRestoreTokens } from './local/restore-tokens.js';
import { registerRotateKeys } from './local/rotate-keys.js';
import { registerAudit } from './operate/audit.js';
import { registerBarriers } from './operate/barriers.js';
import { registerCertificates } from './operate/certificates.js';
import { registerChanges } from './operate/changes.js';
import { registerCompanies, registerPauseAndResume, registerRekey, registerRemove } from './operate/companies.js';
import { registerConnectLink } from './operate/connect-link.js';
import { registerDiff } from './operate/diff.js';
import { registerForget } from './operate/forget.js';
import { registerHolds } from './operate/holds.js';
import { registerInstallation } from './operate/installation.js';
import { registerIssues } from './operate/issues.js';
import { registerLastNight } from './operate/last-night.js';
import { registerNotifications } from './operate/notifications.js';
import { registerOnboard } from './operate/onboard.js';
import { registerQuarantinedTokens, registerReleaseTokens } from './operate/quarantined-tokens.js';
import { registerQueue } from './operate/queue.js';
import { registerQuietHours } from './operate/quiet-hours.js';
import { registerRecords } from './operate/records.js';
import { registerRejected } from './operate/rejected.js';
import { registerRuns } from './operate/runs.js';
import { registerSchema } from './operate/schema.js';
import { registerStatus } from './operate/status.js';
import { registerSync } from './operate/sync.js';
import { registerTokens } from './operate/tokens.js';
import { registerTry } from './operate/try.js';
import { registerVerify } from './operate/verify.js';
import { registerRoles } from './serve/roles.js';
import { registerSandbox } from './serve/sandbox.js';
import { registerUp } from './serve/up.js';
import { hasColour, styled, widthOf } from './terminal.js';

// On a machine with much memory, V8 lets the heap grow to four times the live data before it collects. The flag saves much memory in a
// worker with a giant list, at no noticeable cost in speed (decision 0012).
v8.setFlagsFromString('--heap-growing-percent=75');

const program = new Command('muster')
  .description(
    'Mirrors company data from an OAuth 2.0 protected HTTP API into PostgreSQL, and proves that each mirror is complete.',
  )
  .version(VERSION)
  .addHelpText('after', '\nExit codes: 0 ok, 1 failed, 2 bad usage or configuration.')
  .showHelpAfterError('(add --help for how it is used)')
  .exitOverride();

// For `help` on an unknown command, commander would print its general help and succeed.
program.on('beforeHelp', () => {
  const unknown = program.args.find((arg) => !arg.startsWith('-') && arg !== 'help');
  if (unknown !== undefined) program.error(`error: unknown command '${unknown}'`);
});

// A parent hands its settings to a command when the command is added, so they come first.
program.configureOutput({ getOutHelpWidth: () => widthOf() ?? 80 }).configureHelp({
  // Former names are aliases, which help does not show.
  subcommandTerm: (command) =>
    command.parent === program ? command.name() : [command.name(), ...command.registeredArguments.map(argumentTerm)].join(' '),
  styleTitle: (title) => (hasColour() ? styled('bold', title) : title),
});

function argumentTerm(argument: Argument): string {
  return argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;
}

/** The commands as help lists them: by what a person wants to do. */
const GROUPS: Readonly<Record<string, readonly ((program: Command) => void)[]>> = {
  'Run Muster:': [registerUp, registerRoles, registerMigrate, registerSandbox, registerDoctor],
  'See how it is:': [
    registerStatus,
    registerLastNight,
    registerIssues,
    registerCompanies,
    registerRuns,
    registerRejected,
    registerQueue,
  ],
  'Sync and decide:': [
    registerSync,
    registerVerify,
    registerHolds,
    registerPauseAndResume,
    registerQuietHours,
    registerNotifications,
  ],
  'Connect companies:': [registerOnboard, registerConnectLink, registerRemove, registerQuarantinedTokens, registerReleaseTokens],
  'Read what was mirrored:': [
    registerRecords,
    registerChanges,
    registerDiff,
    registerBarriers,
    registerSchema,
    registerExport,
    registerPublish,
    registerDbt,
  ],
  'Prove, audit and forget:': [registerCertificates, registerCertificate, registerAudit, registerForget, registerMarks],
  'Set up and repair:': [
    registerTokens,
    registerTry,
    registerRekey,
    registerRotateKeys,
    registerInstallation,
    registerRestoreTokens,
  ],
};
for (const [title, registrations] of Object.entries(GROUPS)) {
  program.commandsGroup(title);
  for (const register of registrations) register(program);
}

// The reader of the output may stop early (`muster runs | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

// Node itself would print the error with all its members.
process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => process.exit(exitCodeOf(error)));

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}
