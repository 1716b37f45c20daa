import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Installation } from '../process/installation.js';
import { BackupServer } from '../support/backup-server.js';
import { startShell } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

// The runbooks of docs/copies.md: every command in it is run as it is written there, with Debian's pg_dump and pg_restore, by somebody whose environment has what the
// processes have. What it says in words, the test does.

const BIN = fileURLToPath(new URL('../../bin', import.meta.url));
const document = readFileSync(new URL('../../docs/copies.md', import.meta.url), 'utf8');

/** The blocks of commands under a heading, in order. */
function runbook(heading: string): string[] {
  const [, section] = new RegExp(`^## ${heading}\\n(.*?)(?=^## |(?![^]))`, 'ms').exec(document) ?? [];
  if (section === undefined) throw new Error(`docs/copies.md has no section "${heading}"`);
  return [...section.matchAll(/(?:^ {4}.*\n?)+/gm)].map(([block]) => block.replaceAll(/^ {4}/gm, '').trim());
}

let backups: BackupServer;
let installation: Installation;
let untried: string[];

beforeAll(async () => {
  untried = [...document.matchAll(/(?:^ {4}.*\n?)+/gm)].map(([block]) => block.replaceAll(/^ {4}/gm, '').trim());
  backups = await BackupServer.start();
  const companies = Array.from({ length: 5 }, (_, n) => ({ name: `C${n}`, employees: 10 + n }));
  installation = await Installation.open({ database: await backups.database(), companies, journal: true });
});
afterAll(async () => {
  await installation.close();
  await backups.server.remove();
});

/** As libpq reads it: the services `muster` and, where there is an old place, `muster-old`. */
function services(old: string | undefined): string {
  return Object.entries({ muster: installation.databaseUrl, ...(old && { 'muster-old': old }) })
    .map(([name, address]) => {
      const { hostname, port, pathname, username, password } = new URL(address);
      return `[${name}]\nhost=${hostname}\nport=${port}\ndbname=${pathname.slice(1)}\nuser=${username}\npassword=${password}\n`;
    })
    .join('');
}

/** In the folder of the dump and the journal. */
async function run(block: string | undefined, { old }: { readonly old?: string } = {}): Promise<void> {
  if (block === undefined) throw new Error('The document has no such block of commands');
  untried = untried.filter((one) => one !== block);
  const PGSERVICEFILE = join(installation.deployment.home, 'pg_service.conf');
  writeFileSync(PGSERVICEFILE, services(old), { mode: 0o600 });
  const PATH = [BIN, BackupServer.programs, dirname(process.execPath), process.env.PATH].join(delimiter);
  const shell = startShell(`set -e\n${block}`, installation.deployment.home, { ...installation.commandEnv, PGSERVICEFILE, PATH });
  const { code } = await shell.exit;
  expect(code, `${block}\n${shell.stderr}`).toBe(0);
}

/** Again where a view was made anew meanwhile, as the document says. */
async function backUp(): Promise<void> {
  await waitFor(() => run(runbook('Back up')[0]).then(() => true), { intervalMs: 500 });
}

async function feed(): Promise<string> {
  const { body } = await installation.deployment.call('GET', '/api/changes?limit=1');
  return (body as { feed: string }).feed;
}

async function worksAsBefore(): Promise<void> {
  await installation.syncAll();
  expect(await installation.lost()).toBe(0);
  expect(installation.reused).toBe(0);
  await waitFor(async () => !(await installation.causes()).includes('database_copied'));
}

test('a backup is restored into another database, without a loss', async () => {
  await backUp();
  const before = await feed();
  await installation.rotate(20);
  const [restore, journals, adopt] = runbook('Restore');
  await installation.stop();
  installation.databaseUrl = await backups.emptyPlace();
  await run(restore);
  await run(journals);
  await installation.start();
  await installation.issue('database_copied');
  await run(adopt);
  await worksAsBefore();
  expect(await feed()).not.toBe(before);
});

test('a backup is restored in place, without a loss', async () => {
  await backUp();
  const before = await feed();
  await installation.rotate(20);
  const [restore, adopt] = runbook('Restore in place');
  await installation.stop();
  await run(restore);
  await installation.start();
  await run(adopt);
  await worksAsBefore();
  expect(await feed()).not.toBe(before);
});

test('an installation is moved, and readers of its feed go on', async () => {
  const before = await feed();
  const [move, adopt] = runbook('A planned move');
  await installation.stop();
  const old = installation.databaseUrl;
  installation.databaseUrl = await backups.emptyPlace();
  await run(move, { old });
  await installation.start();
  await installation.issue('database_copied');
  await run(adopt);
  await worksAsBefore();
  expect(await feed()).toBe(before);
});

test('a copy for staging costs the installation nothing', async () => {
  await backUp();
  await installation.stop();
  const original = installation.databaseUrl;
  installation.databaseUrl = await backups.emptyPlace();
  await run(runbook('Restore')[0]);
  await installation.start();
  await run(runbook('A copy for staging')[0]);
  const { body } = await installation.deployment.call('GET', '/api/overview');
  expect(body).toMatchObject({ companies: { reauthorization_required: 5, active: 0 } });
  await installation.stop();
  installation.databaseUrl = original;
  await installation.start();
  await worksAsBefore();
});

test('a failover to a physical replica asks nobody anything', async () => {
  await installation.stop();
  const standby = await backups.server.startStandby();
  const url = new URL(installation.databaseUrl);
  const hosts = `${url.host},${new URL(standby.url).host}`;
  installation.databaseUrl = `postgres://${url.username}:${url.password}@${hosts}${url.pathname}?target_session_attrs=read-write`;
  await installation.start();
  await installation.syncAll();
  const replica = new pg.Client(standby.url);
  await replica.connect();
  await backups.server.stop('immediate');
  await replica.query('SELECT pg_promote()');
  await replica.end();
  // The journal has what the replica may not have received.
  await installation.command('restore-tokens', installation.deployment.env['TOKEN_JOURNAL']!);
  await worksAsBefore();
  expect(await installation.causes()).not.toContain('database_copied');
  await installation.stop();
  await standby.remove();
});

test('every command of the document was run', () => {
  expect(untried).toEqual([]);
});
