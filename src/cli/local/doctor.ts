import type { Command } from 'commander';
import { loadCatalogue } from '../../catalogue/load-catalogue.js';
import { missingFor } from '../../config/catalogue-needs.js';
import { type Config, readConfig } from '../../config/config.js';
import { adminTokenPath, lookAtKeys } from '../../config/kept-secrets.js';
import { faultsOfFiles } from '../../config/operator-settings.js';
import { SETTING_NAMES } from '../../config/settings.js';
import { settingSources } from '../../config/shown-settings.js';
import { systemClock } from '../../core/clock.js';
import { ENVIRONMENTS } from '../../core/company.js';
import { FaultsError } from '../../core/errors.js';
import { lookAtSecret } from '../../core/home.js';
import type { Level } from '../../doctor/check.js';
import type { AdminTokenState } from '../../doctor/configuration.js';
import type { DatabasePlace } from '../../doctor/database-access.js';
import type { Examined } from '../../doctor/examine.js';
import type { Installation } from '../../doctor/installation.js';
import { registerSecret } from '../../observability/secret-registry.js';
import { latenessOf } from '../../runs/lateness.js';
import { CommandFailure } from '../exit-code.js';

const HELP = `
It changes nothing. Run it with the environment of the api and the workers, whether they run or not. Each line has a level (ok, warning,
problem), the check and the finding; the line below says what to do next. With --json a line is {check, level, found, next}.

It needs only the settings, not the admin API. It spends no token: it requests two pages of the service without one.

Exit code 1: there is a problem. A warning is no problem.`;

const HTTP_LIMITS = { connectTimeoutMs: 5_000, silenceTimeoutMs: 8_000, deadlineMs: 10_000 };

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description('examine this installation: settings, database, queue, clocks, keys, catalogue, service, and overdue work')
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', HELP)
    .action(async ({ json }: { json?: boolean }) => {
      const [{ examine }, { checksOf }, { HttpClient }] = await Promise.all([
        import('../../doctor/examine.js'),
        import('../../doctor/installation.js'),
        import('../../http/http-client.js'),
      ]);
      const { proxies, ...installation } = await installationOf(process.env);
      const http = new HttpClient(HTTP_LIMITS, proxies);
      const counts = { ok: 0, warning: 0, problem: 0 };
      try {
        for await (const finding of examine(checksOf({ ...installation, http }))) {
          counts[finding.level] += 1;
          for (const line of json ? [jsonLine(finding)] : textLines(finding)) console.log(line);
        }
      } finally {
        await http.close();
      }
      if (!json) console.log(`\n${counts.ok} ok, ${counts.warning} to look at, ${counts.problem} wrong.`);
      if (counts.problem > 0) throw new CommandFailure('Something is wrong: see the lines that begin with problem.');
    });
}

async function installationOf(env: NodeJS.ProcessEnv): Promise<Omit<Installation, 'http'> & Pick<Config, 'proxies'>> {
  const { config, faults: ofSettings } = readConfig(env);
  const faults = [...ofSettings, ...faultsOfFiles(config.operator)];
  const isWrong = (name: string) => faults.some(({ where }) => where === name || where === `${name}_FILE`);
  for (const { clientSecret } of [...Object.values(config.providers), ...(config.oidc ? [config.oidc] : [])])
    registerSecret(clientSecret.reveal(), { lasting: true });
  const isEmbedded = config.databaseUrl === undefined && !isWrong('DATABASE_URL');
  return {
    configuration: {
      faults,
      sources: settingSources(env),
      knownNames: SETTING_NAMES,
      variables: Object.keys(env),
      adminToken: await adminTokenOf(config),
      environments: ENVIRONMENTS.filter((environment) => config.providers[environment]),
      publicUrl: config.publicUrl,
      isShared: !isEmbedded,
    },
    database: await databaseOf(config, isEmbedded),
    queue: isWrong('REDIS_URL') ? 'wrong' : config.redisUrl === undefined ? 'PostgreSQL' : { redisUrl: config.redisUrl },
    keys: isWrong('MUSTER_ENCRYPTION_KEYS') ? 'wrong' : ((await lookAtKeys(config)) ?? 'none'),
    loadCatalogue: () => {
      const catalogue = loadCatalogue(config.cataloguePath);
      const missing = missingFor(config, catalogue).filter(({ where }) => !isWrong(where));
      if (missing.length > 0) throw new FaultsError('invalid_configuration', 'The catalogue needs a setting.', missing);
      return catalogue;
    },
    providers: config.providers,
    proxies: config.proxies,
    issuer: config.oidc?.issuer,
    lateness: ['STALE_AFTER_HOURS', 'SYNC_TIMEZONE', 'QUIET_HOURS'].some(isWrong)
      ? undefined
      : (catalogue) => latenessOf(config, catalogue),
    hasWebhook: config.webhook !== undefined,
    workerConcurrency: config.workerConcurrency,
    changeRetentionDays: config.changeRetentionDays,
    embeddedHome: isEmbedded ? config.home : undefined,
    clock: systemClock,
  };
}

async function adminTokenOf(config: Config): Promise<AdminTokenState> {
  if (config.adminToken) {
    registerSecret(config.adminToken.reveal(), { lasting: true });
    return { kind: 'set', length: config.adminToken.reveal().length };
  }
  const path = adminTokenPath(config);
  const kept = await lookAtSecret(path);
  return kept ? { kind: 'kept', path, length: kept.secret.reveal().length, isExposed: kept.isExposed } : { kind: 'none', path };
}

/** An embedded database is examined only while a process of Muster runs it. The doctor never starts it. */
async function databaseOf({ databaseUrl, home }: Config, isEmbedded: boolean): Promise<DatabasePlace> {
  if (databaseUrl !== undefined) return { url: databaseUrl };
  const absent = (found: string, next: string): DatabasePlace => ({ absent: { level: 'warning', found, next } });
  if (!isEmbedded) return absent('not looked at: DATABASE_URL is wrong', 'Set it right, and look again.');
  const { runningEmbeddedServer } = await import('../../embedded/embedded-server.js');
  const url = runningEmbeddedServer(home);
  if (url !== undefined) return { url };
  return absent(`the embedded PostgreSQL of ${home} does not run`, 'Start Muster (`muster up`), and look again while it runs.');
}

function jsonLine({ check, level, found, next }: Examined): string {
  return JSON.stringify({ check, level, found, next: next ?? null });
}

const WIDEST: Level = 'warning';
const CHECK_WIDTH = 'service production'.length;

function textLines({ check, level, found, next }: Examined): string[] {
  const line = `${level.padEnd(WIDEST.length)}  ${check.padEnd(CHECK_WIDTH)}  ${found.replaceAll('\n', ' ')}`;
  return next === undefined ? [line] : [line, `${' '.repeat(WIDEST.length + CHECK_WIDTH + 4)}→ ${next}`];
}
