import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

/** How long the companies are synced; 300 is the trial in full, with tokens that live for 40 s. */
const SECONDS = Number(process.env['ODD_TOKENS_SECONDS'] ?? 10);
const LIFE_SECONDS = SECONDS >= 300 ? 40 : 6;

interface OddAnswer {
  readonly status: number;
  readonly type?: string;
  readonly body?: string;
}

const JSON_TYPE = 'application/json';
/** One for each company; `cut` is no answer at all. */
const ODD: Readonly<Record<string, OddAnswer | 'cut'>> = {
  'too early': { status: 400, type: JSON_TYPE, body: '{"error":"access_denied","error_description":"access_token not expired"}' },
  'another format': { status: 400, type: JSON_TYPE, body: '{"Message":"An error has occurred."}' },
  unavailable: { status: 200, type: JSON_TYPE, body: '{"error":"temporarily_unavailable"}' },
  page: { status: 200, type: 'text/html', body: '<html><h1>Maintenance</h1></html>' },
  nothing: { status: 204 },
  cut: 'cut',
};

/** What stands before the sandbox's token endpoint, and knows whose each refresh token is. */
class TokenGateway {
  readonly #server: Server;
  readonly #owners = new Map<string, string>();
  /** The answer that a company's next refresh gets, instead of reaching the sandbox. */
  readonly odd = new Map<string, OddAnswer | 'cut'>();
  sandbox = '';

  constructor() {
    this.#server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      const company = this.#owners.get(new URLSearchParams(body).get('refresh_token') ?? '');
      const odd = company === undefined ? undefined : this.odd.get(company);
      if (odd !== undefined) {
        this.odd.delete(company!);
        if (odd === 'cut') return void request.socket.destroy();
        return void response.writeHead(odd.status, odd.type === undefined ? {} : { 'content-type': odd.type }).end(odd.body);
      }
      const headers = { 'content-type': request.headers['content-type']! };
      const answer = await fetch(new URL(request.url!, this.sandbox), { method: 'POST', headers, body });
      const text = await answer.text();
      const granted = JSON.parse(text) as { company_id?: string; refresh_token?: string };
      if (granted.company_id && granted.refresh_token) this.#owners.set(granted.refresh_token, granted.company_id.toLowerCase());
      response.writeHead(answer.status, { 'content-type': JSON_TYPE }).end(text);
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const gateway = new TokenGateway();
let deployment: Deployment;

beforeAll(async () => {
  const address = await gateway.start();
  const companies = [...Object.keys(ODD), 'revoked', 'healthy'].map((name) => ({ name, employees: 120 }));
  deployment = await Deployment.open({
    sandbox: { accessTokenSeconds: LIFE_SECONDS, companies },
    env: { TEST_AUTH_URL: address },
  });
  gateway.sandbox = deployment.sandbox.url.href;
  await deployment.startApi();
  await deployment.startWorker();
});
afterAll(async () => {
  await deployment.close();
  await gateway.stop();
});

const statusOf = async (companyId: string) =>
  ((await deployment.call('GET', `/api/companies/test/${companyId}`)).body as { status: string }).status;

test(`${Object.keys(ODD).length} companies with one odd answer each are lost to none of them; one that is revoked is noticed`, async () => {
  const { sandbox } = deployment;
  const idOf = (name: string) => sandbox.companies.find((company) => company.name === name)!.companyId;
  for (const { companyId } of sandbox.companies) await deployment.onboard(companyId);
  for (const { companyId } of sandbox.companies)
    expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded' });

  for (const [name, answer] of Object.entries(ODD)) gateway.odd.set(idOf(name), answer);
  const kept = [...Object.keys(ODD), 'healthy'];
  const until = performance.now() + SECONDS * 1_000;
  let noticedAfter: number | undefined;
  let revokedAt: number | undefined;
  while (performance.now() < until || noticedAfter === undefined || gateway.odd.size > 0) {
    for (const name of kept) {
      expect(await statusOf(idOf(name)), name).toBe('active');
      await deployment.call('POST', `/api/companies/test/${idOf(name)}/sync`, { mode: 'full' });
    }
    if (revokedAt === undefined && performance.now() > until - SECONDS * 500) {
      sandbox.revoke(idOf('revoked'));
      revokedAt = performance.now();
    }
    if (revokedAt !== undefined && (await statusOf(idOf('revoked'))) === 'reauthorization_required')
      noticedAfter ??= performance.now() - revokedAt;
    await systemClock.sleep(1_000);
  }
  console.log(
    `tokens of ${LIFE_SECONDS} s for ${SECONDS} s: the revoked company was noticed after ${Math.round(noticedAfter)} ms`,
  );
  for (const name of kept) {
    await deployment.runEnd(idOf(name));
    await deployment.call('POST', `/api/companies/test/${idOf(name)}/sync`, { mode: 'full' });
    expect(await deployment.runEnd(idOf(name)), name).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true }, { verified: true }],
    });
    expect(await statusOf(idOf(name)), name).toBe('active');
  }
  expect(sandbox.reusedRefreshTokens).toBe(0);
});

/** Asks for syncs of the company until `check` holds. */
async function syncUntil(companyId: string, check: () => Promise<boolean>): Promise<void> {
  await waitFor(
    async () => {
      await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
      return check();
    },
    { intervalMs: 1_000 },
  );
}

/** For how many seconds the company's tokens have been refused everywhere; null while one is taken. */
async function refusedFor(companyId: string): Promise<number | null> {
  const { rows } = await deployment.database.db.pool.query<{ seconds: number | null }>(
    'SELECT extract(epoch FROM now() - refused_at)::float8 AS seconds FROM muster.tokens WHERE company_id = $1',
    [companyId],
  );
  return rows[0]!.seconds;
}

/** As if the first refusal had been so many seconds earlier. */
async function ageRefusal(companyId: string, seconds: number): Promise<void> {
  await deployment.database.db.pool.query(
    'UPDATE muster.tokens SET refused_at = refused_at - make_interval(secs => $2) WHERE company_id = $1',
    [companyId, seconds],
  );
}

test('a role that may not read the company’s own record, and one list that it does not show: the company goes on', async () => {
  const { sandbox } = deployment;
  const { companyId } = sandbox.companies.find(({ name }) => name === 'too early')!;
  const departments = new RegExp(`${companyId}/departments`, 'i');
  for (const path of [new RegExp(`/companies/${companyId}$`, 'i'), departments])
    sandbox.faults.add({ kind: 'status', status: 401 }, { path, times: Infinity });
  const refusals = () =>
    sandbox.requests.all('/departments').filter(({ path, status }) => departments.test(path) && status === 401).length;
  // A refusal everywhere that lasted for half a minute would end the authorization.
  for (let round = 0; round < 3; round += 1) {
    const before = refusals();
    await syncUntil(companyId, async () => refusals() > before);
    await ageRefusal(companyId, 30);
    expect(await statusOf(companyId)).toBe('active');
  }
  sandbox.faults.clear();
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  expect(await deployment.runRetried(companyId)).toMatchObject({ status: 'succeeded' });
});

test('everything is refused, though tokens are granted: for some seconds that costs nothing, for longer the company is noticed', async () => {
  const { sandbox } = deployment;
  const { companyId } = sandbox.companies.find(({ name }) => name === 'page')!;
  const refuse = () =>
    sandbox.faults.add(
      { kind: 'status', status: 401 },
      { path: new RegExp(`/api/companies/${companyId}`, 'i'), times: Infinity },
    );
  refuse();
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  await waitFor(async () => (await refusedFor(companyId)) !== null, { what: 'a refusal everywhere' });
  sandbox.faults.clear();
  expect(await deployment.runRetried(companyId)).toMatchObject({ status: 'succeeded' });
  expect(await statusOf(companyId)).toBe('active');

  refuse();
  await syncUntil(companyId, async () => (await refusedFor(companyId)) !== null);
  expect(await statusOf(companyId)).toBe('active');
  await ageRefusal(companyId, 25);
  await syncUntil(companyId, async () => (await statusOf(companyId)) === 'reauthorization_required');
  expect(await refusedFor(companyId)).toBeGreaterThanOrEqual(30);
  sandbox.faults.clear();
});

test('401 to one list alone: that list fails, and the company goes on, however often', async () => {
  const { sandbox } = deployment;
  const { companyId } = sandbox.companies.find(({ name }) => name === 'healthy')!;
  sandbox.faults.add({ kind: 'status', status: 401 }, { path: '/departments', times: Infinity });
  for (let time = 0; time < 2; time++) {
    await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
    // The list was read before: the run waits and asks it again.
    const run = await waitFor(async () => {
      const last = await deployment.lastRun(companyId);
      return last.walks.some(({ error }) => error) ? last : undefined;
    });
    expect(run.walks.find(({ resource }) => resource === 'employees')).toMatchObject({ status: 'succeeded', verified: true });
    expect(run.walks.find(({ resource }) => resource === 'departments')?.error?.code).toBe('service_refused');
    expect(await statusOf(companyId)).toBe('active');
  }
  sandbox.faults.clear();
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded' });
});
