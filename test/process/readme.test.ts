import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { anyPort } from '../support/port.js';
import { startShell } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DOCUMENTS = ['README.md', 'docs/operating.md'].map((file) => readFileSync(join(ROOT, file), 'utf8')).join('\n');
const blocks = (language: string) =>
  [...DOCUMENTS.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, text]) => text!);
const COMMANDS = blocks('sh').flatMap((block) => block.trim().split('\n'));
const unrun = new Set(COMMANDS);

/** Takes the command of README.md or docs/operating.md that begins so, to run it here. */
function command(beginning: string): string {
  const found = COMMANDS.find((line) => line.startsWith(beginning));
  if (!found) throw new Error(`Neither README.md nor docs/operating.md has a command that begins with ${beginning}`);
  unrun.delete(found);
  return found;
}

const deployment = await Deployment.open({ redisUrl: redisUrl() });
afterAll(() => deployment.close());

test('the first command mirrors the sandbox, and the next ones show it', async () => {
  expect(command('npm ci && npm start')).toBe('npm ci && npm start');
  const port = String(anyPort());
  const home = join(deployment.home, 'first');
  const env = { PORT: port, MUSTER_HOME: home };
  const muster = startShell('npm start', ROOT, env);
  await muster.waitForOutput(/Ctrl-C stops everything/);
  expect(muster.stdout).toMatch(/SANDBOX/);
  // The sandbox's records change now and then, during a slow walk, too.
  // On a slow machine, the sandbox changes while each of the three passes is read.
  expect(muster.stdout).toMatch(
    /Nordlia Helse og Omsorg +employees +(?:(?:19|20)\d{3} +){2}\d+ +\d+ +(?:proved|not proved: total_changed)/,
  );

  for (const beginning of [
    './bin/muster status',
    './bin/muster companies',
    './bin/muster sync',
    './bin/muster verify',
    './bin/muster try',
    './bin/muster issues',
    './bin/muster runs',
    './bin/muster changes',
    './bin/muster doctor',
    './bin/muster export',
    'curl',
  ]) {
    const line = command(beginning)
      .replaceAll('.muster/', `${home}/`)
      .replaceAll(':8080', `:${port}`)
      .replace('--output ', `--output ${home}/`);
    const { stdout, stderr } = await promisify(execFile)('sh', ['-c', line], { cwd: ROOT, env: { ...process.env, ...env } });
    if (beginning !== './bin/muster issues') expect(stdout.length, line).toBeGreaterThan(80);
    // Whether there is an issue by now depends on the machine.
    else expect(stdout + stderr).toMatch(/^(ISSUE .*\n.+|No issues match\.)/);
  }

  for (const [hours, shown] of [
    ['22:00-06:00', '22:00-06:00'],
    ['none', 'none'],
    ['default', 'those of QUIET_HOURS'],
  ] as const) {
    const line = command(`./bin/muster quiet-hours --company Acme ${hours}`).replace('Acme', "'Nordlia Helse og Omsorg'");
    const { stdout } = await promisify(execFile)('sh', ['-c', line], { cwd: ROOT, env: { ...process.env, ...env } });
    expect(stdout).toContain(shown);
  }

  // The lessons of the sandbox, in their order. A sync of a company that was revoked fails.
  const shown = new Map<string, string>();
  let lesson = '';
  for (const line of blocks('sh')
    .find((block) => block.includes('sandbox break'))!
    .trim()
    .split('\n')) {
    unrun.delete(line);
    lesson = /sandbox (?:break )?(\w+)$/.exec(line)?.[1] ?? lesson;
    const { stdout } = await promisify(execFile)('sh', ['-c', `${line} || true`], { cwd: ROOT, env: { ...process.env, ...env } });
    shown.set(lesson, (shown.get(lesson) ?? '') + stdout);
  }
  expect(shown.get('shrink')).toMatch(/share +617 +1234 +open/);
  expect(shown.get('lie')).toMatch(/employees +succeeded .* contradicting_envelope/);
  expect(shown.get('revoke')).toMatch(/reauthorization_required \(token_refused\)[^]*authorize again at http/);
  expect(shown.get('mend')).toMatch(/shrink has ended[^]*lie has ended[^]*revoke has ended[^]*connect-link/);

  const [query] = blocks('sql');
  const client = new pg.Client(embeddedUrl(readFileSync(join(home, 'pgpass'), 'utf8')));
  await client.connect();
  expect((await client.query(query!)).rowCount).toBeGreaterThan(21_000);
  await client.end();

  // As Ctrl-C does: the signal goes to npm, its shell and muster alike.
  muster.killGroup('SIGINT');
  await muster.exit;
  await waitFor(async () => (await processesOf(home)) === '', { what: 'every process of it to end' });
});

test('the parts run on their own, and take a company from standard input', async () => {
  const { sandbox, env, home } = deployment;
  const company = sandbox.companies[3]!;
  writeFileSync(join(home, 'refresh-token.txt'), sandbox.issueRefreshToken(company.companyId).reveal());
  const address = sandbox.url.href;
  // The exports of the document, then the values that replace them here.
  const exports = [
    command('export PRODUCTION_BASE_URL'),
    command('export PRODUCTION_CLIENT_ID'),
    command('export DATABASE_URL'),
    command('export MUSTER_ENCRYPTION_KEYS'),
  ];
  const here = `export PRODUCTION_BASE_URL=${address} PRODUCTION_AUTH_URL=${address} PRODUCTION_CLIENT_ID=${sandbox.clientId} PRODUCTION_CLIENT_SECRET=${sandbox.clientSecret.reveal()}`;
  const database = `export DATABASE_URL=${env['DATABASE_URL']} REDIS_URL=${env['REDIS_URL'] ?? ''} MUSTER_ADMIN_TOKEN=${deployment.adminToken} MUSTER_ENCRYPTION_KEYS=${env['MUSTER_ENCRYPTION_KEYS']}`;
  const shell = (line: string) =>
    startShell([...exports, here, database, line].join('\n'), ROOT, { MUSTER_HOME: home, PORT: deployment.port });

  const migration = shell(command('./bin/muster migrate'));
  expect(await migration.exit).toEqual({ code: 0, signal: null });
  const [api, worker] = [shell(`exec ${command('./bin/muster api')}`), shell(`exec ${command('./bin/muster worker')}`)];
  await Promise.all([api.waitForOutput(/ready: api/), worker.waitForOutput(/ready: worker/)]);
  const onboarding = shell(command('./bin/muster onboard').replace('refresh-token.txt', join(home, 'refresh-token.txt')));
  expect(await onboarding.exit, onboarding.stderr).toEqual({ code: 0, signal: null });
  expect(await deployment.runEnd(company.companyId)).toMatchObject({
    environment: 'production',
    status: 'succeeded',
    walks: [{ received: 1234 }, { received: 78 }],
  });
  const link = shell(command('./bin/muster connect-link'));
  expect(await link.exit, link.stderr).toEqual({ code: 0, signal: null });
  expect((await fetch(link.stdout.trim(), { redirect: 'manual' })).headers.get('location')).toContain(
    `${address}auth/authorize?response_type=code`,
  );
  const rotation = shell(command('./bin/muster rotate-keys'));
  expect(await rotation.exit, rotation.stderr).toEqual({ code: 0, signal: null });
  for (const part of [worker, api]) {
    part.kill('SIGTERM');
    expect(await part.exit).toEqual({ code: 0, signal: null });
  }
});

test('no command is left untried', () => {
  // No machine without a container engine can run these. The replay of the Dockerfile and compose.test.ts test them instead.
  command('sh docker/make-secrets.sh');
  command('docker compose up');
  expect([...unrun]).toEqual([]);
});

function embeddedUrl(pgpass: string): string {
  const [host, port, , user, password] = pgpass.trim().split(':');
  return `postgres://${user}:${password}@${host}:${port}/muster`;
}

async function processesOf(home: string): Promise<string> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'args']);
  return stdout
    .split('\n')
    .filter((line) => line.includes(home))
    .join('\n');
}
