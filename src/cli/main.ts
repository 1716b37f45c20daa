import v8 from 'node:v8';
import { type Argument, Command } from 'commander';
import { VERSION } from '../core/version.js';
import { exitCodeOf } from './exit-code.js';
import { hasColour, styled, widthOf } from './terminal.js';

// On a machine with much memory, V8 lets the heap grow to four times the live data before it collects. The flag saves much memory in a
// worker with a giant list, at no noticeable cost in speed (decision 0012).
v8.setFlagsFromString('--heap-growing-percent=75');
// The values of a row group live long enough to make V8's space for young objects grow. An export takes 285 MB instead of 470 under Node 24
// where that space stays as it is (decision 0012). It can be kept from growing only before modules are read.
if (process.argv[2] === 'export') v8.setFlagsFromString('--semi-space-growth-factor=1');

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

type Register = (program: Command) => void;

/**
 * The commands as help lists them: by what a person wants to do. A command is loaded when it is asked for, since to load all of them takes a command
 * longer than what it does; and one with another name, as help is, loads them all.
 */
const GROUPS: Readonly<Record<string, readonly { readonly names: readonly string[]; readonly load: () => Promise<Register> }[]>> =
  {
    'Run Muster:': [
      { names: ['up'], load: async () => (await import('./serve/up.js')).registerUp },
      { names: ['api', 'worker'], load: async () => (await import('./serve/roles.js')).registerRoles },
      { names: ['migrate'], load: async () => (await import('./local/migrate.js')).registerMigrate },
      { names: ['sandbox'], load: async () => (await import('./serve/sandbox.js')).registerSandbox },
      { names: ['doctor'], load: async () => (await import('./local/doctor.js')).registerDoctor },
    ],
    'See how it is:': [
      { names: ['status'], load: async () => (await import('./operate/status.js')).registerStatus },
      { names: ['last-night'], load: async () => (await import('./operate/last-night.js')).registerLastNight },
      { names: ['issues'], load: async () => (await import('./operate/issues.js')).registerIssues },
      { names: ['companies'], load: async () => (await import('./operate/companies.js')).registerCompanies },
      { names: ['runs'], load: async () => (await import('./operate/runs.js')).registerRuns },
      { names: ['rejected'], load: async () => (await import('./operate/rejected.js')).registerRejected },
      { names: ['queue'], load: async () => (await import('./operate/queue.js')).registerQueue },
    ],
    'Sync and decide:': [
      { names: ['sync'], load: async () => (await import('./operate/sync.js')).registerSync },
      { names: ['verify'], load: async () => (await import('./operate/verify.js')).registerVerify },
      { names: ['holds'], load: async () => (await import('./operate/holds.js')).registerHolds },
      { names: ['pause', 'resume'], load: async () => (await import('./operate/companies.js')).registerPauseAndResume },
      { names: ['quiet-hours'], load: async () => (await import('./operate/quiet-hours.js')).registerQuietHours },
      { names: ['notifications'], load: async () => (await import('./operate/notifications.js')).registerNotifications },
    ],
    'Connect companies:': [
      { names: ['onboard'], load: async () => (await import('./operate/onboard.js')).registerOnboard },
      { names: ['connect-link'], load: async () => (await import('./operate/connect-link.js')).registerConnectLink },
      { names: ['remove'], load: async () => (await import('./operate/companies.js')).registerRemove },
      {
        names: ['quarantined-tokens'],
        load: async () => (await import('./operate/quarantined-tokens.js')).registerQuarantinedTokens,
      },
      { names: ['release-tokens'], load: async () => (await import('./operate/quarantined-tokens.js')).registerReleaseTokens },
    ],
    'Read what was mirrored:': [
      { names: ['records'], load: async () => (await import('./operate/records.js')).registerRecords },
      { names: ['changes'], load: async () => (await import('./operate/changes.js')).registerChanges },
      { names: ['diff'], load: async () => (await import('./operate/diff.js')).registerDiff },
      { names: ['barriers'], load: async () => (await import('./operate/barriers.js')).registerBarriers },
      { names: ['schema'], load: async () => (await import('./operate/schema.js')).registerSchema },
      { names: ['export'], load: async () => (await import('./local/export.js')).registerExport },
      { names: ['publish'], load: async () => (await import('./local/publish.js')).registerPublish },
      { names: ['dbt'], load: async () => (await import('./local/dbt.js')).registerDbt },
    ],
    'Prove, audit and forget:': [
      { names: ['certificates'], load: async () => (await import('./operate/certificates.js')).registerCertificates },
      { names: ['certificate'], load: async () => (await import('./local/certificate.js')).registerCertificate },
      { names: ['audit'], load: async () => (await import('./operate/audit.js')).registerAudit },
      { names: ['forget'], load: async () => (await import('./operate/forget.js')).registerForget },
      { names: ['marks'], load: async () => (await import('./local/marks.js')).registerMarks },
    ],
    'Set up and repair:': [
      { names: ['tokens'], load: async () => (await import('./operate/tokens.js')).registerTokens },
      { names: ['try'], load: async () => (await import('./operate/try.js')).registerTry },
      { names: ['rekey'], load: async () => (await import('./operate/companies.js')).registerRekey },
      { names: ['rotate-keys'], load: async () => (await import('./local/rotate-keys.js')).registerRotateKeys },
      { names: ['adopt', 'detach'], load: async () => (await import('./operate/installation.js')).registerInstallation },
      { names: ['restore-tokens'], load: async () => (await import('./local/restore-tokens.js')).registerRestoreTokens },
    ],
  };
const COMMANDS = Object.entries(GROUPS).flatMap(([title, commands]) => commands.map((command) => ({ title, ...command })));
const asked = COMMANDS.filter(({ names }) => names.includes(process.argv[2] ?? ''));
const loaded = (asked.length > 0 ? asked : COMMANDS).map(async ({ title, load }) => ({ title, register: await load() }));
for (const { title, register } of await Promise.all(loaded)) register(program.commandsGroup(title));

// The reader of the output may stop early (`muster runs | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

// Node itself would print the error with all its members.
process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => process.exit(exitCodeOf(error)));

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}
