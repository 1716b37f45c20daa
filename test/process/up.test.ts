import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { runMuster } from '../cli/run-muster.js';
import { anyPort } from '../support/port.js';
import { startMuster, startShell, type TestProcess } from '../support/process.js';
import { waitFor } from './wait-for.js';

const home = mkdtempSync(join(tmpdir(), 'muster-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const controlFile = join(home, 'sandbox-control.json');
const port = () => String(anyPort());
const READY = /Ctrl-C stops everything/;
const REVOKED = 'c86d41f7-0e35-4b98-a2c6-91e8d7b35f03';
const REMOVED = '1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02';
const PAUSED = '5b0e7a52-19c4-4d0e-9b7e-0c4f6a1d2e01';
const HAVGLOTT = '9a27e5b0-d3f8-4169-b54a-2c60f98e7d04';

let first: TestProcess;
const firstPort = port();

test('a second one on the same MUSTER_HOME is refused, and harms nothing', async () => {
  first = startShell('exec npm start', process.cwd(), { MUSTER_HOME: home, PORT: firstPort });
  await first.waitForOutput(READY);
  const second = startMuster(['up'], { MUSTER_HOME: home, PORT: port() });
  expect(await second.exit).toEqual({ code: 1, signal: null });
  expect(second.stderr).toMatch(/muster up already runs on this MUSTER_HOME/);
  expect(await statuses(firstPort)).toHaveLength(5);
  const found = await runMuster(['status'], { MUSTER_HOME: home, PORT: '1', PUBLIC_URL: 'https://nobody.invalid' });
  expect([found.code, found.stderr]).toEqual([0, '']);
  const published = await runMuster(['publish'], { MUSTER_HOME: home });
  expect([published.code, published.stderr]).toEqual([
    0,
    expect.stringMatching(/^No server can subscribe to the embedded PostgreSQL/),
  ]);
});

test('what a person removed, paused or revoked stays so at the next start, and lessons of the sandbox end', async () => {
  const operate = (...args: string[]) => runMuster(args, { MUSTER_HOME: home, PORT: firstPort });
  const of = (companyId: string) => ['--environment', 'test', '--company', companyId];
  expect((await operate('remove', ...of(REMOVED), '--yes')).code).toBe(0);
  expect((await operate('pause', ...of(PAUSED))).code).toBe(0);
  const sandbox = /SANDBOX at (\S+):/.exec(first.stdout)![1]!;
  expect(
    (await fetch(`${sandbox}/sandbox/companies/${REVOKED}/revoke`, { method: 'POST', redirect: 'manual' })).status,
  ).toBeLessThan(400);
  await operate('sync', ...of(REVOKED), '--wait');
  expect(await lesson('break', 'shrink', ...of(HAVGLOTT).slice(2))).toMatchObject({ code: 0, stderr: '' });
  expect(existsSync(controlFile)).toBe(true);
  // A signal to npm alone stops everything.
  first.kill('SIGTERM');
  expect(await first.exit).toEqual({ code: 0, signal: null });
  const processes = async () => (await promisify(execFile)('ps', ['-eo', 'args'])).stdout;
  await waitFor(async () => !(await processes()).includes(home), { what: 'every process of it to end' });
  expect(existsSync(controlFile)).toBe(false);
  const stopped = await lesson('break', 'lie');
  expect([stopped.code, stopped.stderr]).toEqual([1, expect.stringMatching(/No sandbox runs on this MUSTER_HOME .*npm start/)]);

  const nextPort = port();
  const next = startMuster(['up', '--json', '--sandbox-changes', '0'], { MUSTER_HOME: home, PORT: nextPort });
  await next.waitForOutput(/admin_token_file/);
  const lines = linesOf(next.stdout);
  expect(lines.pop()).toEqual({ url: `http://127.0.0.1:${nextPort}`, admin_token_file: join(home, 'admin-token') });
  expect(lines.map(({ resource, status }) => [resource, status])).toEqual(
    [1, 2].flatMap(() => ['employees', 'departments'].map((resource) => [resource, 'succeeded'])),
  );
  const after = new Map(await statuses(nextPort));
  expect(after.get(REMOVED)).toBeUndefined();
  expect(after.get(PAUSED)).toBe('paused');
  expect(after.get(REVOKED)).toBe('reauthorization_required');
  expect([...after.values()].filter((status) => status === 'active')).toHaveLength(2);
  expect((await lesson('mend')).stdout).toBe('No lesson is on.\n');
  const synced = await runMuster(['sync', ...of(HAVGLOTT), '--wait', '--json'], { MUSTER_HOME: home, PORT: nextPort });
  expect(synced.json()).toMatchObject([
    { walks: expect.arrayContaining([expect.objectContaining({ resource: 'employees', received: 1234, deleted: 0 })]) },
  ]);
  next.kill('SIGKILL');
  await next.exit;
  expect(existsSync(controlFile)).toBe(true);
  expect((await lesson('mend')).stderr).toMatch(/No sandbox runs/);
});

test('with an environment of its own it mirrors no example, suggests what fits, and refuses lessons', async () => {
  const env = {
    MUSTER_HOME: home,
    PORT: port(),
    PRODUCTION_BASE_URL: 'https://api.example.com',
    PRODUCTION_AUTH_URL: 'https://login.example.com',
    PRODUCTION_CLIENT_ID: 'muster',
    PRODUCTION_CLIENT_SECRET: 'a-client-secret',
  };
  const configured = await runMuster(['sandbox', 'break', 'lie'], env);
  expect([configured.code, configured.stderr]).toEqual([2, expect.stringMatching(/a service is configured here \(production\)/)]);
  // The process before it was killed: this one goes on with its database.
  const up = startMuster(['up'], env);
  await up.waitForOutput(READY);
  expect(up.stdout).not.toMatch(/SANDBOX|Mirrored/);
  const suggested = [...up.stdout.matchAll(/^ {2}\.\/bin\/muster (\S+.*)/gm)].map(([, command]) => command);
  expect(suggested.slice(0, 2)).toEqual([
    'connect-link --environment production',
    'onboard --environment production --company <company_id> < refresh-token.txt',
  ]);
  expect(suggested).toContain('sync --environment production --company <company_id> --wait');
  const found = await runMuster(['status'], { MUSTER_HOME: home });
  expect([found.code, found.stderr]).toEqual([0, '']);
  const refused = await lesson('break', 'lie');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/the Muster at http.* mirrors another service/)]);
  up.kill('SIGINT');
  expect(await up.exit).toEqual({ code: 0, signal: null });
});

const lesson = (...args: string[]) => runMuster(['sandbox', ...args], { MUSTER_HOME: home });

async function statuses(onPort: string): Promise<[string, string][]> {
  const { stdout } = await runMuster(['companies', '--json'], { MUSTER_HOME: home, PORT: onPort });
  return linesOf(stdout).map(({ company_id, status }) => [company_id!, status!]);
}

function linesOf(stdout: string): Record<string, string>[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, string>);
}

test('an outside address that is not safe is named before anything starts', async () => {
  const env = { MUSTER_HOME: join(home, 'unsafe'), PUBLIC_URL: 'http://muster.example.com' };
  const { code, stdout, stderr } = await runMuster(['up'], env);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/\[invalid_configuration\]\n  PUBLIC_URL: must be https, .*for example: https:/);
});
