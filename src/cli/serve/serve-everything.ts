import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type App, startApp } from '../../app.js';
import { loadCatalogue } from '../../catalogue/load-catalogue.js';
import { type Config, callbackUrl } from '../../config/config.js';
import { adminTokenPath } from '../../config/kept-secrets.js';
import { isSafe } from '../../config/setting-values.js';
import { FaultsError, isMusterError } from '../../core/errors.js';
import { withoutSlash } from '../../core/own-address.js';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.js';
import { OWN_COMMAND } from '../own-command.js';
import { announceUp, refuseSecondUp } from '../running-up.js';
import { pairLines, widthOf, wrap } from '../terminal.js';
import { showFirstMirror } from './first-mirror.js';
import { announceSandbox } from './sandbox-control.js';
import { loggerBesideTerminal, serveUntilSignal } from './serve.js';

export interface UpOptions {
  /** Share of the sandbox's records that changes in a minute. */
  readonly sandboxChanges: number;
  /** Prints JSON lines for programs instead of text for people. */
  readonly json?: boolean;
}

/** Serves every role until a signal. It also starts a sandbox if no environment of the service is configured. */
export function serveEverything(config: Config, { sandboxChanges, json = false }: UpOptions): Promise<void> {
  return serveUntilSignal(async (signal) => {
    // The message begins with a line feed, since the terminal has written ^C into the current line.
    signal.addEventListener('abort', () => process.stderr.isTTY && console.error('\nStopping …'), { once: true });
    const { logger, file } = loggerBesideTerminal(config);
    const usesSandbox = Object.keys(config.providers).length === 0;
    if (usesSandbox) await refuseSecondUp(config);
    const sandbox = usesSandbox ? await startOwnSandbox(config, sandboxChanges) : undefined;
    if (!json) banner(config, sandbox);
    let forgetSandbox: (() => void) | undefined;
    let app: App | undefined;
    try {
      forgetSandbox = sandbox && announceSandbox(config, sandbox);
      const served = sandbox
        ? {
            ...config,
            providers: { test: { ...providerOf(sandbox, config), bases: basesAt(sandbox.url, config) } },
            proxies: config.proxies.except(sandbox.url),
          }
        : config;
      app = await startApp(served, new Set(['api', 'worker']), logger, signal);
      const started = app;
      const forget = announceUp(config, started.url ?? '', logger);
      if (sandbox) await showFirstMirror(app.runs, sandbox.companies, () => syncExamples(started, sandbox), { signal, json });
      if (json)
        console.log(JSON.stringify({ url: app.url, admin_token_file: config.adminToken ? null : adminTokenPath(config) }));
      else whatNext(served, started, sandbox, file);
      return {
        stop: async () => {
          await started.stop();
          await sandbox?.stop();
          forgetSandbox?.();
          forget();
        },
      };
    } catch (error) {
      await app?.stop();
      await sandbox?.stop();
      forgetSandbox?.();
      throw error;
    }
  }, config.drainSeconds);
}

async function startOwnSandbox(config: Config, changesPerMinute: number): Promise<Sandbox> {
  if (!isSafe(config.publicUrl)) {
    const problem = 'must be https, or lead to this machine: the sandbox redirects people to no other address';
    const fault = { where: 'PUBLIC_URL', problem, example: 'https://muster.example.com' };
    throw new FaultsError('invalid_configuration', 'Muster cannot start: 1 setting is wrong or missing.', [fault]);
  }
  return startSandbox({
    live: changesPerMinute > 0 ? { changesPerMinute } : false,
    redirectUris: [callbackUrl(config).href],
    stateFile: join(config.home, 'sandbox.json'),
  });
}

function providerOf({ url, clientId, clientSecret }: Sandbox, config: Config) {
  return { baseUrl: url, authUrl: url, clientId, clientSecret, redirectUri: callbackUrl(config) };
}

/** The sandbox stands for every further host of the API in the catalogue. */
function basesAt(url: URL, { cataloguePath }: Config): Record<string, URL> {
  const { endpoints } = loadCatalogue(cataloguePath);
  return Object.fromEntries(endpoints.flatMap(({ base }) => (base === undefined ? [] : [[base, url]])));
}

/**
 * Onboards example companies that are new, and requests a run of each company. A company that a person has removed, paused or revoked stays
 * so. Returns the ids of the runs.
 */
async function syncExamples(app: App, sandbox: Sandbox): Promise<string[]> {
  const runs: string[] = [];
  for (const { environment, companyId } of sandbox.companies) {
    const company = { environment, companyId };
    const isNew = !(await app.connections.find(company)) && (await app.runs.list({ companyId, limit: 1 })).data.length === 0;
    if (isNew) await app.onboarding.onboard({ ...company, refreshToken: sandbox.issueRefreshToken(companyId) });
    try {
      runs.push((await app.runs.request({ company, trigger: isNew ? 'onboarding' : 'manual' })).id);
    } catch (error) {
      if (!isMusterError(error) || (error.status !== 409 && error.status !== 404)) throw error;
    }
  }
  return runs;
}

function banner({ providers, databaseUrl, redisUrl, home }: Config, sandbox: Sandbox | undefined): void {
  const sources = sandbox
    ? [`the built-in SANDBOX at ${withoutSlash(sandbox.url)}: invented companies, nothing leaves this machine`]
    : Object.entries(providers).map(([name, { baseUrl }]) => `the ${name} environment at ${withoutSlash(baseUrl)}`);
  console.log('Muster mirrors company data into PostgreSQL.\n');
  const pairs = [
    ...sources.map((source) => ['  Source', source] as const),
    ['  Database', databaseUrl === undefined ? `an embedded PostgreSQL under ${home}` : 'the PostgreSQL of DATABASE_URL'],
    ['  Queue', redisUrl === undefined ? 'in the same PostgreSQL' : 'the Redis of REDIS_URL'],
  ] as const;
  for (const line of pairLines(pairs, widthOf())) console.log(line);
  console.log();
}

function whatNext(config: Config, app: App, sandbox: Sandbox | undefined, logFile: string | undefined): void {
  const token = config.adminToken ? 'MUSTER_ADMIN_TOKEN' : `in ${adminTokenPath(config)}`;
  console.log('\nWhere to look');
  explain(`${app.url}/`, `the control room; sign in with the admin token, ${token}`);
  explain(`${app.url}/api/docs`, 'the admin API, which takes the same token');
  if (app.embeddedUrl) explain(psqlCommand(config, app.embeddedUrl), 'the tables');
  if (logFile) explain(logFile, 'the log');

  const [environment] = Object.keys(config.providers);
  const company = `--environment ${environment} --company <company_id>`;
  console.log('\nTry next, in another terminal');
  if (!sandbox) {
    explain(`${OWN_COMMAND} connect-link --environment ${environment}`, 'a link with which a customer connects a company');
    explain(`${OWN_COMMAND} onboard ${company} < refresh-token.txt`, 'or onboard a company with a refresh token of its own');
  }
  explain(`${OWN_COMMAND} status`, 'the state of the mirrors');
  explain(`${OWN_COMMAND} companies`, 'the companies and their mirrored lists');
  const one = sandbox ? `--company '${sandbox.companies.at(-1)!.name}'` : company;
  explain(`${OWN_COMMAND} sync ${one} --wait`, 'mirror a company again');
  explain(`${OWN_COMMAND} changes`, 'what changed, record by record');
  if (sandbox) explain(`${OWN_COMMAND} sandbox lessons`, 'failures of a service, and their effects');
  console.log();
  for (const line of wrap('Ctrl-C stops everything; the next start continues where this one stopped.', widthOf() ?? Infinity))
    console.log(line);
}

/** A command stays on one line of its own, however narrow the terminal is: a person copies it. */
function explain(what: string, why: string): void {
  console.log(`  ${what}`);
  const indent = '      ';
  for (const line of wrap(why, (widthOf() ?? Infinity) - indent.length)) console.log(indent + line);
}

/** psql reads the password from a file, so that it is in no command line. */
function psqlCommand(config: Config, { hostname, port, username, password, pathname }: URL): string {
  const file = join(config.home, 'pgpass');
  rmSync(file, { force: true });
  writeFileSync(file, `${hostname}:${port}:*:${username}:${password}\n`, { mode: 0o600 });
  return `PGPASSFILE=${file} psql -h ${hostname} -p ${port} -U ${username} ${pathname.slice(1)}`;
}
