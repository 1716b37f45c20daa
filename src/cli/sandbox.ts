import { once } from 'node:events';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseCount } from './operator-command.js';
import { tableLines } from './table.js';

interface SandboxOptions {
  readonly host: string;
  readonly port: number;
  readonly seed: number;
  readonly redirectUri?: string[];
  readonly refreshTokens?: boolean;
}

export function registerSandbox(program: Command): void {
  program
    .command('sandbox')
    .description('start the built-in sandbox provider alone, and print what to set so that Muster uses it')
    .option('--host <host>', 'where it listens', '127.0.0.1')
    .addOption(new Option('--port <port>', 'where it listens; 0 is any free port').argParser(parsePort).default(0))
    .addOption(new Option('--seed <number>', 'the same seed makes the same records').argParser(parseCount).default(1))
    .option('--redirect-uri <uri...>', "registered redirect URLs (default: Muster's own on port 8080)")
    .option('--refresh-tokens', 'print a refresh token for each company, to try `muster onboard` with')
    .action(async ({ redirectUri, refreshTokens, ...options }: SandboxOptions) => {
      const { startSandbox } = await import('../sandbox/sandbox.js');
      const sandbox = await startSandbox({ ...options, ...(redirectUri && { redirectUris: redirectUri }) });
      const address = sandbox.url.href.replace(/\/$/, '');
      console.log(`The sandbox listens at ${address}; ${address}/sandbox/ shows who granted access.\n`);
      console.log(`export TEST_BASE_URL=${address} TEST_AUTH_URL=${address}`);
      console.log(`export TEST_CLIENT_ID=${sandbox.clientId} TEST_CLIENT_SECRET=${sandbox.clientSecret.reveal()}\n`);
      const columns = {
        COMPANY: ({ companyId }: { companyId: string }) => companyId,
        NAME: ({ name }: { name: string }) => name,
        EMPLOYEES: ({ employees }: { employees: number }) => employees,
        ...(refreshTokens && {
          'REFRESH TOKEN': ({ companyId }: { companyId: string }) => sandbox.issueRefreshToken(companyId).reveal(),
        }),
      };
      for (const line of tableLines(sandbox.companies, columns)) console.log(line);
      await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
      await sandbox.stop();
    });
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new InvalidArgumentError('It must be a number from 0 to 65535.');
  return port;
}
