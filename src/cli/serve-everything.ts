import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type App, startApp } from '../app.js';
import { type Config, callbackUrl } from '../config/config.js';
import { adminTokenPath } from '../config/kept-secrets.js';
import { isSafe } from '../config/setting-values.js';
import { FaultsError, isMusterError } from '../core/errors.js';
import { type Sandbox, startSandbox } from '../sandbox/sandbox.js';
import { showFirstMirror } from './first-mirror.js';
import { announceUp, refuseSecondUp } from './running-up.js';
import { loggerBesideTerminal, serveUntilSignal } from './serve.js';

export interface UpOptions {
  /** Share of the sandbox's records that changes in a minute. */
  readonly sandboxChanges: number;
  /** Prints JSON lines for programs instead of text for people. */
  readonly json?: boolean;
}

/** Serves every role until a signal, beside a sandbox when no environment of the service is configured. */
export function serveEverything(config: Config, options: UpOptions): Promise<void> {
  return serveUntilSignal((signal) => {
    // The message begins with a new line: the terminal has written ^C into the current one.
    signal.addEventListener('abort', () => process.stderr.isTTY && console.error('\nStopping …'), { once: true });
    return up(config, options, signal);
  });
}

async function up(
  config: Config,
  { sandboxChanges, json = false }: UpOptions,
  signal: AbortSignal,
): Promise<{ stop(): Promise<void> }> {
  const { logger, file } = loggerBesideTerminal(config);
  const usesSandbox = Object.keys(config.providers).length === 0;
  if (usesSandbox) await refuseSecondUp(config);
  const sandbox = usesSandbox ? await startOwnSandbox(config, sandboxChanges) : undefined;
  if (!json) banner(config, sandbox);
  let app: App | undefined;
  try {
    const served = sandbox ? { ...config, providers: { test: providerOf(sandbox, config) } } : config;
    app = await startApp(served, new Set(['api', 'worker']), logger, signal);
    const started = app;
    const forget = announceUp(config, started.url ?? '', logger);
    if (sandbox) await showFirstMirror(app.runs, sandbox.companies, () => syncExamples(started, sandbox), { signal, json });
    if (json) console.log(whereToLook(served, started));
    else whatNext(served, started, { isSandbox: sandbox !== undefined, logFile: file });
    return {
      stop: async () => {
        await started.stop();
        await sandbox?.stop();
        forget();
      },
    };
  } catch (error) {
    await app?.stop();
    await sandbox?.stop();
    throw error;
  }
}

async function startOwnSandbox(config: Config, changesPerMinute: number): Promise<Sandbox> {
  if (!isSafe(config.publicUrl)) {
    const [problem, example] = [
      'must be https, or lead to this machine: the sandbox, too, sends people nowhere else',
      'https://muster.example.com',
    ];
    throw new FaultsError('invalid_configuration', 'Muster cannot start: 1 setting is wrong or missing.', [
      { where: 'PUBLIC_URL', problem, example },
    ]);
  }
  return startSandbox({
    live: changesPerMinute > 0 ? { changesPerMinute } : false,
    redirectUris: [callbackUrl(config).href],
    stateFile: join(config.home, 'sandbox.json'),
  });
}

function providerOf(sandbox: Sandbox, config: Config) {
  return {
    baseUrl: sandbox.url,
    authUrl: sandbox.url,
    clientId: sandbox.clientId,
    clientSecret: sandbox.clientSecret,
    redirectUri: callbackUrl(config),
  };
}

/**
 * Onboards the example companies that were never here, and requests a run of each company. A company that a person has removed, paused
 * or revoked stays so. Returns the ids of the runs.
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

function banner(config: Config, sandbox: Sandbox | undefined): void {
  console.log('Muster mirrors company data into PostgreSQL.\n');
  if (sandbox) {
    console.log(`  Source    the built-in SANDBOX at ${origin(sandbox.url)}: made-up companies, nothing leaves this machine`);
  } else {
    for (const [environment, { baseUrl }] of Object.entries(config.providers)) {
      console.log(`  Source    the ${environment} environment at ${origin(baseUrl)}`);
    }
  }
  console.log(
    `  Database  ${config.databaseUrl === undefined ? `an embedded PostgreSQL under ${config.home}` : 'the PostgreSQL of DATABASE_URL'}`,
  );
  console.log(`  Queue     ${config.redisUrl === undefined ? 'in the same PostgreSQL' : 'the Redis of REDIS_URL'}\n`);
}

function whereToLook(config: Config, { url }: App): string {
  return JSON.stringify({ url, admin_token_file: config.adminToken ? null : adminTokenPath(config) });
}

function whatNext(
  config: Config,
  app: App,
  { isSandbox, logFile }: { readonly isSandbox: boolean; readonly logFile: string | undefined },
): void {
  const places: [place: string, what: string][] = [
    [
      `${app.url}/api/docs`,
      `the admin API; its token is ${config.adminToken ? 'MUSTER_ADMIN_TOKEN' : `in ${adminTokenPath(config)}`}`,
    ],
    ...(app.embeddedUrl ? [[psqlCommand(config, app.embeddedUrl), 'the tables'] as [string, string]] : []),
    ...(logFile ? [[logFile, 'the log'] as [string, string]] : []),
  ];
  const [environment] = Object.keys(config.providers);
  const onboarding: [command: string, what: string][] = [
    [`./bin/muster connect-link --environment ${environment}`, 'a link with which a customer connects a company'],
    [
      `./bin/muster onboard --environment ${environment} --company <company_id> < refresh-token.txt`,
      'or onboard a company with a refresh token of its own',
    ],
  ];
  const commands: [command: string, what: string][] = [
    ...(isSandbox ? [] : onboarding),
    ['./bin/muster status', 'how the mirrors stand'],
    ['./bin/muster companies', 'the companies, and what is mirrored of each'],
    [`./bin/muster sync --environment ${environment} --company <company_id> --wait`, 'mirror one again'],
    ['./bin/muster changes', 'what changed, record by record'],
  ];
  const lines = (rows: [string, string][]) => rows.map(([what, why]) => `  ${what}\n      ${why}`).join('\n');
  console.log(`
Where to look
${lines(places)}

Try next, in another terminal
${lines(commands)}

Ctrl-C stops everything; the next start goes on where this one stopped.`);
}

/** The password goes into a file that psql reads, so that it stands in no command line. */
function psqlCommand(config: Config, { hostname, port, username, password, pathname }: URL): string {
  const file = join(config.home, 'pgpass');
  rmSync(file, { force: true });
  writeFileSync(file, `${hostname}:${port}:*:${username}:${password}\n`, { mode: 0o600 });
  return `PGPASSFILE=${file} psql -h ${hostname} -p ${port} -U ${username} ${pathname.slice(1)}`;
}

function origin(url: URL): string {
  return url.href.replace(/\/$/, '');
}
