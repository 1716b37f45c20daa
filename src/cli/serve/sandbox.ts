import { once } from 'node:events';
import type { Command } from 'commander';
import { loadConfig } from '../../config/config.js';
import { isMusterError } from '../../core/errors.js';
import { withoutSlash } from '../../core/own-address.js';
import type { Sandbox } from '../../sandbox/sandbox.js';
import { parseCount, refuse } from '../operate/operator-command.js';
import { type Columns, tableLines } from '../table.js';
import { announceSandbox } from './sandbox-control.js';
import { registerLessons } from './sandbox-lessons.js';

interface SandboxOptions {
  readonly host: string;
  readonly port: number;
  readonly seed: number;
  readonly redirectUri?: string[];
  readonly refreshTokens?: boolean;
  readonly json?: boolean;
}

export function registerSandbox(program: Command): void {
  const sandbox = program.command('sandbox').description('start the built-in sandbox provider alone, or make it fail');
  sandbox
    .command('start', { isDefault: true })
    .description('start it alone, and print the settings with which Muster uses it (default)')
    .option('--host <host>', 'host to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 is any free port', parsePort, 0)
    .option('--seed <number>', 'the same seed gives the same records', parseCount, 1)
    .option('--redirect-uri <uri...>', "registered redirect URLs (default: Muster's own on port 8080)")
    .option('--refresh-tokens', 'print a refresh token for each company, to try `muster onboard` with')
    .option('--json', 'print everything as one JSON object')
    .action(async ({ redirectUri, refreshTokens, json, ...options }: SandboxOptions) => {
      const { startSandbox } = await import('../../sandbox/sandbox.js');
      const started = await startSandbox({ ...options, ...(redirectUri && { redirectUris: redirectUri }) });
      const forget = announce(started);
      const lines = json ? [jsonLine(started, refreshTokens)] : textLines(started, refreshTokens);
      for (const line of lines) console.log(line);
      await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
      await started.stop();
      forget();
    });
  registerLessons(sandbox);
}

/** The sandbox runs even if MUSTER_HOME is unusable; then no command can begin lessons in it. */
function announce(sandbox: Sandbox): () => void {
  try {
    return announceSandbox(loadConfig(process.env), sandbox);
  } catch (error) {
    if (!isMusterError(error, 'invalid_configuration')) throw error;
    console.error(`muster: \`muster sandbox break\` will not find this sandbox. ${error.message}`);
    return () => {};
  }
}

function jsonLine(sandbox: Sandbox, refreshTokens = false): string {
  const companies = sandbox.companies.map(({ companyId, name, employees }) => ({
    company_id: companyId,
    name,
    employees,
    ...(refreshTokens && { refresh_token: sandbox.issueRefreshToken(companyId).reveal() }),
  }));
  const { clientId, clientSecret } = sandbox;
  return JSON.stringify({ url: withoutSlash(sandbox.url), client_id: clientId, client_secret: clientSecret.reveal(), companies });
}

function textLines(sandbox: Sandbox, refreshTokens = false): string[] {
  const address = withoutSlash(sandbox.url);
  const columns: Columns<Sandbox['companies'][number]> = {
    COMPANY: ({ companyId }) => companyId,
    NAME: ({ name }) => name,
    EMPLOYEES: ({ employees }) => employees,
    ...(refreshTokens && { 'REFRESH TOKEN': ({ companyId }) => sandbox.issueRefreshToken(companyId).reveal() }),
  };
  return [
    `The sandbox listens at ${address}; ${address}/sandbox/ shows who granted access.\n`,
    `export TEST_BASE_URL=${address} TEST_AUTH_URL=${address}`,
    `export TEST_CLIENT_ID=${sandbox.clientId} TEST_CLIENT_SECRET=${sandbox.clientSecret.reveal()}\n`,
    ...tableLines(sandbox.companies, columns),
  ];
}

function parsePort(text: string): number {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : refuse('It must be a number from 0 to 65535.');
}
