import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { waitFor } from '../support/wait-for.js';
import { accessTokenFor, get, refresh } from './client.js';

const COMPANY = 'd0d0d0d0-0000-4000-8000-00000000000d';
const PATH = `/api/companies/${COMPANY}/employees`;

let sandbox: Sandbox;
let token: string;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ companyId: COMPANY, name: 'Company', employees: 20 }] });
  token = await accessTokenFor(sandbox, COMPANY);
});

beforeEach(() => sandbox.reset());
afterAll(() => sandbox.stop());

const page = () => get(sandbox, token, PATH, { skip: '0', $take: '10' });
const newToken = () => sandbox.issueRefreshToken(COMPANY).reveal();

test('a status with headers, for the next so many requests', async () => {
  sandbox.faults.add({ kind: 'status', status: 429, headers: { 'Retry-After': '7' } }, { times: 2 });
  expect(sandbox.faults.pending).toBe(2);
  const first = await page();
  expect([first.status, first.headers.get('retry-after')]).toEqual([429, '7']);
  expect([(await page()).status, (await page()).status]).toEqual([429, 200]);
  expect(sandbox.requests.all().map(({ status, companyId }) => [status, companyId])).toEqual([
    [429, COMPANY],
    [429, COMPANY],
    [200, COMPANY],
  ]);
});

test('a target chooses method and path, and lets some pass first; the control page is spared', async () => {
  sandbox.faults.add({ kind: 'status', status: 500 }, { path: /employees$/, method: 'GET', skip: 1, times: Infinity });
  sandbox.faults.add({ kind: 'status', status: 503 }, { path: '/auth/token' });
  expect((await fetch(new URL('/sandbox/', sandbox.url))).status).toBe(200);
  expect([(await page()).status, (await page()).status, (await page()).status]).toEqual([200, 500, 500]);
  expect((await refresh(sandbox, newToken())).status).toBe(503);
  sandbox.faults.clear();
  expect((await page()).status).toBe(200);
});

test('a target chooses one page of a list by what is asked for', async () => {
  sandbox.faults.add({ kind: 'status', status: 500 }, { input: { skip: '4' }, times: Infinity });
  const ask = (skip: string) => get(sandbox, token, PATH, { skip, $take: '10' });
  expect([(await ask('0')).status, (await ask('4')).status, (await ask('8')).status]).toEqual([200, 500, 200]);
});

test('a request that is held is served once the faults are cleared', async () => {
  sandbox.faults.add({ kind: 'hold' }, { skip: 1, times: Infinity });
  expect((await page()).status).toBe(200);
  let served = 0;
  const held = [page(), page()].map((answer) => answer.finally(() => (served += 1)));
  await waitFor(() => sandbox.requests.all().length === 3);
  // Whatever is sent behind them is answered, and they are not.
  expect((await fetch(new URL('/sandbox/', sandbox.url))).status).toBe(200);
  expect(served).toBe(0);
  sandbox.faults.clear();
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
});

test('a connection dropped before the service acted leaves the refresh token unspent', async () => {
  const refreshToken = newToken();
  sandbox.faults.add({ kind: 'drop', when: 'before' });
  await expect(refresh(sandbox, refreshToken)).rejects.toThrow('fetch failed');
  expect((await refresh(sandbox, refreshToken)).status).toBe(200);
});

test.each(['after', 'midway'] as const)('a connection dropped %s the service acted leaves it spent', async (when) => {
  const refreshToken = newToken();
  const reused = sandbox.reusedRefreshTokens;
  sandbox.faults.add({ kind: 'drop', when });
  await expect(refresh(sandbox, refreshToken).then((answer) => answer.text())).rejects.toThrow(TypeError);
  expect((await refresh(sandbox, refreshToken)).status).toBe(400);
  expect(sandbox.reusedRefreshTokens).toBe(reused + 1);
});

test('a request hangs until its client gives up', async () => {
  sandbox.faults.add({ kind: 'hang', when: 'before' });
  const client = new AbortController();
  const hanging = fetch(new URL(`${PATH}?skip=4`, sandbox.url), { signal: client.signal });
  await waitFor(() => sandbox.requests.all().length === 1);
  client.abort();
  await expect(hanging).rejects.toMatchObject({ name: 'AbortError' });
  expect(sandbox.requests.all()).toMatchObject([{ path: PATH, input: { skip: '4' } }]);
  expect(sandbox.requests.all()[0]?.status).toBeUndefined();
});

test('many late answers at once are no reason for a warning', async () => {
  const warnings: string[] = [];
  const note = ({ name }: Error) => warnings.push(name);
  process.on('warning', note);
  sandbox.faults.add({ kind: 'delay', ms: 100 }, { times: 20 });
  await Promise.all(Array.from({ length: 20 }, page));
  process.off('warning', note);
  expect(warnings).toEqual([]);
});

test('a delayed answer is whole', async () => {
  sandbox.faults.add({ kind: 'delay', ms: 30 });
  expect((await page()).status).toBe(200);
});

test('a truncated answer is no JSON', async () => {
  sandbox.faults.add({ kind: 'truncate' });
  const answer = await page();
  expect(answer.status).toBe(200);
  await expect(answer.json()).rejects.toThrow(SyntaxError);
});

test('fewer records than asked for', async () => {
  sandbox.faults.add({ kind: 'clamp', take: 3 });
  expect(await (await page()).json()).toMatchObject({ totalRecords: 20, totalDisplayRecords: 3 });
});

test('a lie about the total, and an envelope without data', async () => {
  sandbox.faults.add({ kind: 'alter', members: { totalRecords: 9 } });
  sandbox.faults.add({ kind: 'alter', members: { data: undefined } });
  expect(await (await page()).json()).toMatchObject({ totalRecords: 9, totalDisplayRecords: 10 });
  expect(await (await page()).json()).toEqual({ totalRecords: 20, totalDisplayRecords: 10 });
});

test('token answers that lack members or name another company', async () => {
  const members = { refresh_token: undefined, expires_in: undefined, company_id: 'another' };
  sandbox.faults.add({ kind: 'alter', members }, { path: '/auth/token' });
  const answer = (await (await refresh(sandbox, newToken())).json()) as object;
  expect(Object.keys(answer)).toEqual(['access_token', 'token_type', 'company_id']);
  expect(answer).toMatchObject({ company_id: 'another' });
});

test('stopping ends what hangs, and may be done twice', async () => {
  const other = await startSandbox({ companies: [] });
  other.faults.add({ kind: 'hang', when: 'after' });
  const hanging = fetch(other.url).catch((error: unknown) => error);
  while (other.requests.all().length === 0) await new Promise((resolve) => setImmediate(resolve));
  await other.stop();
  expect(await hanging).toBeInstanceOf(Error);
  await other.stop();
});

test('a port in use is said to be so', async () => {
  await expect(startSandbox({ port: Number(sandbox.url.port), companies: [] })).rejects.toMatchObject({ code: 'port_in_use' });
});
