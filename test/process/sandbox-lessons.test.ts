import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runMuster } from '../cli/run-muster.js';
import { allow } from '../support/consent.js';
import { anyPort } from '../support/port.js';
import { startMuster, type TestProcess } from '../support/process.js';

const HAVGLOTT = '9a27e5b0-d3f8-4169-b54a-2c60f98e7d04';
const NYSTIFTET = '5b0e7a52-19c4-4d0e-9b7e-0c4f6a1d2e01';

const home = mkdtempSync(join(tmpdir(), 'muster-'));
const env = { MUSTER_HOME: home, PORT: String(anyPort()) };
const controlFile = join(home, 'sandbox-control.json');
let up: TestProcess;

beforeAll(async () => {
  up = startMuster(['up', '--sandbox-changes', '0'], env);
  await up.waitForOutput(/Ctrl-C stops everything/);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const muster = (...args: string[]) => runMuster(args, env);
const company = (companyId = HAVGLOTT) => ['--environment', 'test', '--company', companyId];

interface SyncedRun {
  readonly status: string;
  readonly walks: { resource: string; verified: boolean; unverified_reason?: string; received: number; deleted: number }[];
}

/** The employees as the run of a sync shows them. */
async function sync(companyId = HAVGLOTT) {
  const { stdout } = await muster('sync', ...company(companyId), '--wait', '--json');
  const run = JSON.parse(stdout) as SyncedRun;
  return { status: run.status, employees: run.walks.find(({ resource }) => resource === 'employees')! };
}

test('the start names the lessons, and what begins them is for the owner alone', async () => {
  expect(up.stdout).toMatch(/\.\/bin\/muster sandbox lessons\n/);
  expect(statSync(controlFile).mode & 0o777).toBe(0o600);
  const { token, url } = JSON.parse(readFileSync(controlFile, 'utf8')) as { token: string; url: string };
  expect(up.stdout + up.stderr).not.toContain(token);
  expect((await fetch(`${url}/sandbox/lessons/lie/break`, { method: 'POST' })).status).toBe(401);
  const { code, stdout } = await muster('sandbox', 'lessons');
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^ {2}shrink +Half of .* Then `muster sync`, `muster holds`: .*$/m)]);
  expect((await muster('sandbox', 'break')).stdout).toBe(stdout);
  expect((await muster('sandbox', 'lessons', '--json')).json()).toContainEqual(expect.objectContaining({ lesson: 'revoke' }));
});

test('half of a list vanishes: a hold, until the records are back', async () => {
  const broken = await muster('sandbox', 'break', 'shrink');
  expect([broken.code, broken.stderr]).toEqual([0, '']);
  const next = [...broken.stdout.matchAll(/^ {2}\.\/bin\/muster (.*)$/gm)].map(([, command]) => command!);
  expect(next).toEqual([`sync ${company().join(' ')} --wait`, 'holds', 'sandbox mend shrink']);
  expect(await sync()).toMatchObject({ status: 'succeeded', employees: { verified: true, received: 617, deleted: 0 } });
  const holds = async () => (await muster('holds', '--json')).json();
  expect(await holds()).toEqual([expect.objectContaining({ company_id: HAVGLOTT, count: 617, status: 'open', cause: 'share' })]);
  expect((await muster('sandbox', 'lessons')).stdout).toMatch(/^shrink is on: employees of Havgløtt/m);

  expect((await muster('sandbox', 'mend', 'shrink')).stdout).toMatch(/^shrink has ended/);
  expect(await sync()).toMatchObject({ employees: { verified: true, received: 1234, deleted: 0 } });
  expect(await holds()).toEqual([expect.objectContaining({ status: 'superseded' })]);
});

test('a total that is a lie: the list is not proved', async () => {
  const [begun] = (await muster('sandbox', 'break', 'lie', ...company().slice(2), '--list', 'employees', '--json')).json();
  expect(begun).toMatchObject({ lesson: 'lie', list: 'employees', until: null, mend: './bin/muster sandbox mend lie' });
  expect(await sync()).toMatchObject({
    status: 'succeeded',
    employees: { verified: false, unverified_reason: 'contradicting_envelope', received: 1234, deleted: 0 },
  });
  expect((await muster('sandbox', 'mend', '--json')).json()).toEqual([expect.objectContaining({ lesson: 'lie' })]);
  expect(await sync()).toMatchObject({ employees: { verified: true } });
});

test('a list that is away for two seconds', async () => {
  const [begun] = (await muster('sandbox', 'break', 'down', '--for', '2s', '--json')).json();
  expect(Date.parse(begun.until)).toBeGreaterThan(Date.now() - 60_000);
  expect(await sync()).toMatchObject({ status: 'succeeded', employees: { verified: true } });
  expect((await muster('sandbox', 'mend')).stdout).toBe('No lesson is on.\n');
});

test('the authorization is taken back: the company authorizes again by its link', async () => {
  await muster('sandbox', 'break', 'revoke');
  expect(await sync()).toMatchObject({ status: 'failed' });
  const status = async () => (await muster('companies', ...company(), '--json')).json()[0].status;
  expect(await status()).toBe('reauthorization_required');
  expect((await muster('companies', ...company(NYSTIFTET), '--json')).json()[0].status).toBe('active');
  const mended = (await muster('sandbox', 'mend')).stdout;
  expect(mended).toContain(`./bin/muster connect-link ${company().join(' ')}`);
  await allow((await muster('connect-link', ...company())).stdout.trim(), HAVGLOTT);
  expect(await status()).toBe('active');
  expect(await sync()).toMatchObject({ status: 'succeeded', employees: { verified: true } });
});

test.each([
  [['break', 'forgive'], /There is no lesson "forgive": `muster sandbox lessons` lists them/],
  [['break', 'shrink', '--company', NYSTIFTET], /needs a list of 22 records or more.*Choose another company/],
  [['break', 'next-href', '--list', 'employees'], /choose shifts/],
  [['break', 'lie', '--for', 'ever'], /a time like 45s, 5m or 1h/],
  [['mend', 'forgive'], /There is no lesson/],
])('muster sandbox %j is refused', async (args, message) => {
  const { code, stdout, stderr } = await muster('sandbox', ...args);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(message)]);
});

test('a sandbox that runs alone takes lessons, too', async () => {
  up.kill('SIGINT');
  expect(await up.exit).toEqual({ code: 0, signal: null });
  up = startMuster(['sandbox', '--json'], env);
  await up.waitForOutput(/client_secret/);
  const [begun] = (await muster('sandbox', 'break', 'forbid', '--json')).json();
  expect(begun).toMatchObject({ lesson: 'forbid', company_id: HAVGLOTT });
  up.kill('SIGTERM');
  expect(await up.exit).toEqual({ code: 0, signal: null });
});
