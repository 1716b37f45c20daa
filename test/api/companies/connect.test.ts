import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Environment } from '../../../src/core/company.js';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

const CALLBACK = 'https://muster.example/oauth/callback';
const COMPANIES = ['Alfa AS', 'Beta AS', 'Gamma AS', 'Delta AS', 'Epsilon AS'].map((name) => ({
  companyId: randomUUID(),
  name,
  employees: 1,
}));
const sandboxes = {} as Record<Environment, Sandbox>;
let admin: AdminFixture;

const providerOf = ({ url, clientId, clientSecret }: Sandbox) => ({
  baseUrl: url,
  authUrl: url,
  clientId,
  clientSecret,
  redirectUri: new URL(CALLBACK),
});

beforeAll(async () => {
  for (const environment of ['production', 'test'] as const)
    sandboxes[environment] = await startSandbox({
      companies: COMPANIES,
      redirectUris: [CALLBACK],
      clientId: `client of ${environment}`,
    });
  admin = await startAdmin({ production: providerOf(sandboxes.production), test: providerOf(sandboxes.test) });
});
afterEach(() => {
  cookie = '';
  for (const sandbox of Object.values(sandboxes)) sandbox.reset();
});
afterAll(async () => {
  await admin.stop();
  for (const sandbox of Object.values(sandboxes)) await sandbox.stop();
});

async function newLink(body: object = { environment: 'test' }): Promise<string> {
  const { status, json } = await admin.call('POST', '/api/connect-links', body);
  expect([status, json]).toEqual([
    201,
    { url: expect.stringMatching(/^https:\/\/muster\.example\/connect\/[\w-]{43}$/), expires_at: expect.any(String) },
  ]);
  return new URL(json.url).pathname;
}

/** The cookie of the last flow that was started. */
let cookie = '';

/** A page of ours as a customer's browser gets it: no token, no redirect followed. */
async function open(path: string, method = 'GET', own = cookie) {
  const response = await fetch(admin.url + path, { method, redirect: 'manual', headers: own ? { cookie: own } : {} });
  cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie;
  return {
    status: response.status,
    headers: response.headers,
    location: response.headers.get('location') ?? '',
    text: await response.text(),
  };
}

const stateOf = async (link: string) => new URL((await open(link)).location).searchParams.get('state')!;

/** The consent screen behind a link, answered; gives the path to which the browser is sent back. */
async function consent(link: string, companyId: string | undefined): Promise<string> {
  const { location } = await open(link);
  const page = await (await fetch(location)).text();
  const form = new URLSearchParams({
    consent: /name="consent" value="([^"]+)"/.exec(page)![1]!,
    decision: companyId ? 'allow' : 'deny',
    company_id: companyId ?? '',
  });
  const answer = await fetch(new URL('/auth/authorize', location), { method: 'POST', body: form, redirect: 'manual' });
  const back = new URL(answer.headers.get('location')!);
  expect(back.href.startsWith(CALLBACK)).toBe(true);
  return back.pathname + back.search;
}

const exchanges = (environment: Environment = 'test') => sandboxes[environment].requests.all('/auth/token').length;
const titleOf = (page: { text: string }) => /<h1>(.*?)<\/h1>/.exec(page.text)?.[1];
const connection = (companyId: string, environment: Environment = 'test') =>
  admin.db.prisma.connection.findUnique({ where: { environment_companyId: { environment, companyId } } });

describe('making links', () => {
  test('needs the token, a known environment, and nothing that it does not know', async () => {
    for (const path of ['/api/connect-links', `/api/companies/test/${randomUUID()}/connect-link`])
      expect((await admin.fetch(path, { method: 'POST' })).status).toBe(401);
    for (const body of [
      {},
      { environment: 'staging' },
      { environment: 'test', company: 'x' },
      { environment: 'test', company_id: 'x' },
    ])
      expect((await admin.call('POST', '/api/connect-links', body)).status).toBe(400);
    const own = await startAdmin({});
    const answer = await own.call('POST', '/api/connect-links', { environment: 'test' });
    await own.stop();
    expect([answer.status, answer.json.code]).toEqual([422, 'environment_not_configured']);
  });

  test('names the company, in either way, and is on record', async () => {
    const companyId = randomUUID();
    const path = `/api/companies/production/${companyId.toUpperCase()}/connect-link`;
    const made = await admin.call('POST', path);
    expect([made.status, Object.keys(made.json)]).toEqual([201, ['url', 'expires_at']]);
    for (const link of [new URL(made.json.url).pathname, await newLink({ environment: 'production', company_id: companyId })]) {
      const { status, location } = await open(link);
      expect([status, new URL(location).searchParams.get('company_id')]).toEqual([302, companyId]);
      expect(location.startsWith(`${sandboxes.production.url.href}auth/authorize?response_type=code&client_id=client`)).toBe(
        true,
      );
    }
    expect(await admin.db.prisma.auditEntry.count({ where: { companyId, action: 'connect_link.create' } })).toBe(2);
  });
});

describe('the flow', () => {
  test('connects the company that was chosen, starts its first sync, and says so', async () => {
    const { companyId } = COMPANIES[0]!;
    const link = await newLink();
    const callback = await consent(link, companyId);
    const page = await open(callback);
    expect([page.status, titleOf(page)]).toEqual([200, 'The company is connected']);
    expect(page.text).toContain('The first sync has started');
    expect(await connection(companyId)).toMatchObject({ status: 'active' });
    expect(await admin.db.prisma.run.findMany({ where: { companyId } })).toMatchObject([{ trigger: 'onboarding' }]);

    for (const used of [await open(callback), await open(link)])
      expect([used.status, titleOf(used)]).toEqual([410, 'This link has been used']);
    expect(exchanges()).toBe(1);
  });

  test('authorizes again at authorize_url, with one click', async () => {
    const { companyId } = COMPANIES[1]!;
    await open(await consent(await newLink(), companyId));
    const address = `/api/companies/test/${companyId}`;
    expect((await admin.call('GET', address)).json.authorize_url).toBeUndefined();
    await admin.db.prisma.run.deleteMany({ where: { companyId } });
    await admin.db.prisma.connection.updateMany({
      where: { companyId },
      data: { reauthorizationReason: 'token_refused', statusChangedAt: new Date() },
    });
    await admin.db.prisma.company.updateMany({ where: { companyId }, data: { name: 'Beta <b>"AS"</b>' } });
    const { authorize_url } = (await admin.call('GET', address)).json;
    expect((await admin.call('GET', '/api/companies?status=reauthorization_required')).json.data).toMatchObject([
      { authorize_url },
    ]);
    const page = await open(await consent(new URL(authorize_url).pathname, companyId));
    expect([page.status, titleOf(page)]).toEqual([200, 'The company is connected again']);
    expect(page.text).toContain('Beta &#60;b&#62;&#34;AS&#34;&#60;/b&#62;');
    expect(await connection(companyId)).toMatchObject({ status: 'active' });
    expect(await admin.db.prisma.run.findMany({ where: { companyId } })).toMatchObject([{ trigger: 'reauthorization' }]);
  });

  test('is of one environment', async () => {
    const { companyId } = COMPANIES[2]!;
    const link = await consent(await newLink({ environment: 'test' }), companyId);
    const state = await stateOf(await newLink({ environment: 'production' }));
    const mixed = await open(link.replace(/state=.*/, `state=${state}`));
    expect([mixed.status, titleOf(mixed)]).toEqual([400, 'The permission is no longer valid']);
    expect([exchanges('production'), exchanges('test')]).toEqual([1, 0]);
    expect(await connection(companyId, 'production')).toBeNull();
    expect((await open(link)).status).toBe(200);
    expect((await open(await consent(await newLink({ environment: 'production' }), companyId))).status).toBe(200);
    expect(await admin.db.prisma.connection.count({ where: { companyId } })).toBe(2);
  });

  test('exchanges one code however many callbacks come at once', async () => {
    const { companyId } = COMPANIES[3]!;
    const callback = await consent(await newLink(), companyId);
    const pages = await Promise.all(Array.from({ length: 25 }, () => open(callback)));
    expect(pages.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const { status } of pages) expect([200, 409, 410]).toContain(status);
    expect(exchanges()).toBe(1);
    expect(await admin.db.prisma.run.count({ where: { companyId } })).toBe(1);
  });
});

describe('pages that connect nothing', () => {
  const { companyId } = COMPANIES[4]!;
  const again = (link: string) => `<a class="action" href="https://muster.example${link}?go=1">Start again</a>`;

  test('denied', async () => {
    const link = await newLink();
    const page = await open(await consent(link, undefined));
    expect([page.status, titleOf(page)]).toEqual([400, 'Access was not granted']);
    expect(page.text).toContain(again(link));
    const bare = await open('/oauth/callback');
    expect([bare.status, titleOf(bare)]).toEqual([400, 'Access was not granted']);
    expect(bare.text).toContain('open the link that you were sent once more');
  });

  test('another company than the link names', async () => {
    const [wanted, chosen] = [{ environment: 'test', companyId: randomUUID() }, companyId];
    const link = await newLink({ environment: 'test', company_id: wanted.companyId });
    const page = await open(await consent(link, chosen));
    expect([page.status, titleOf(page)]).toEqual([409, 'Another company was chosen']);
    expect(page.text).toContain(again(link));
    for (const { companyId: id } of [wanted, { companyId: chosen }]) expect(page.text).not.toContain(id);
    expect(await admin.db.prisma.quarantinedToken.count({ where: { companyId: chosen } })).toBe(1);
  });

  test('a code that is used, late, or made up', async () => {
    const link = await newLink();
    const page = await open(`/oauth/callback?code=made-up-code-4711&state=${await stateOf(link)}`);
    expect([page.status, titleOf(page)]).toEqual([400, 'The permission is no longer valid']);
    expect(page.text).toContain(again(link));
    expect(page.text).not.toContain('made-up-code');
  });

  test('the same answer again', async () => {
    const link = await newLink();
    const callback = `/oauth/callback?code=made-up-code-4712&state=${await stateOf(link)}`;
    await open(callback);
    const page = await open(callback);
    expect([page.status, titleOf(page)]).toEqual([409, 'This step was taken already']);
    expect(page.text).toContain(again(link));
    expect(exchanges()).toBe(1);
  });

  test('a state that we did not sign', async () => {
    const state = await stateOf(await newLink());
    for (const query of [
      'code=c',
      'code=c&state=',
      'code=c&state=x',
      `code=c&state=${state}x`,
      `code=c&state=${state}&state=${state}`,
      'code=c&state[a]=b',
    ]) {
      const page = await open(`/oauth/callback?${query}`);
      expect([page.status, titleOf(page), query]).toEqual([400, 'This answer cannot be accepted', query]);
    }
    expect(exchanges()).toBe(0);
  });

  test('a service that is down: the code is sent once', async () => {
    const link = await newLink();
    const callback = await consent(link, companyId);
    sandboxes.test.faults.add({ kind: 'drop', when: 'before' }, { path: '/auth/token' });
    const page = await open(callback);
    expect([page.status, titleOf(page)]).toEqual([502, 'The service does not answer']);
    expect(page.text).toContain(again(link));
    expect(exchanges()).toBe(1);
  });

  test('a link that is unknown, mangled, expired, or of an environment that is gone', async () => {
    const link = await newLink();
    // A slash that was put behind a link spoils nothing.
    expect((await open(`${link}/`)).status).toBe(302);
    for (const unknown of [
      '/connect',
      '/connect/',
      '/connect/x',
      `${link}//`,
      `${link}/../x`,
      link.slice(0, -1),
      `/connect/${'A'.repeat(5_000)}`,
      '/connect/%00',
      '/connect/%3Cb%3E',
    ]) {
      const page = await open(unknown);
      expect([page.status, titleOf(page), unknown]).toEqual([404, 'This link is not known', unknown]);
    }
    const state = await stateOf(link);
    await admin.db.prisma.connectLink.updateMany({ data: { expiresAt: new Date() } });
    const expired = await open(link);
    expect([expired.status, titleOf(expired)]).toEqual([410, 'This link has expired']);
    expect(expired.text).toContain('Ask the person who sent you the link for a new one.');
    // Begun in time: it may end, but there is nothing to start again with.
    const late = await open(`/oauth/callback?code=made-up-code-4713&state=${state}`);
    expect(titleOf(late)).toBe('The permission is no longer valid');
    expect(late.text).not.toContain('Start again');
  });

  test('none of which stored anything', async () => {
    expect(await connection(companyId)).toBeNull();
    expect(await admin.db.prisma.token.count({ where: { companyId } })).toBe(0);
  });

  test('something that breaks inside', async () => {
    const own = await startAdmin();
    await own.db.pool.query('DROP TABLE muster.connect_links CASCADE');
    const response = await fetch(`${own.url}/connect/${'A'.repeat(43)}`);
    expect([response.status, response.headers.get('content-type')]).toEqual([500, 'text/html; charset=utf-8']);
    expect(await response.text()).not.toMatch(/prisma|relation|select/i);
    await own.stop();
  });
});

describe('what an attacker tries', () => {
  test('scripts in the query come back nowhere', async () => {
    const evil = encodeURIComponent(`"><script>alert(1)</script>`);
    for (const path of [
      `/oauth/callback?error=${evil}&error_description=${evil}&state=${evil}`,
      `/oauth/callback?code=${evil}&state=${evil}`,
      `/connect/${evil}`,
      `/oauth/callback?code=${evil}&state=${await stateOf(await newLink())}`,
    ]) {
      const { text } = await open(path);
      expect(text).not.toMatch(/<script|alert\(1\)/);
    }
  });

  test('no address leads the browser elsewhere', async () => {
    const link = await newLink();
    for (const query of [
      '?redirect_uri=https://evil.example',
      '?auth_url=https://evil.example&next=//evil.example',
      '#//evil.example',
    ])
      expect((await open(link + query)).location).toMatch(
        new RegExp(
          `^${sandboxes.test.url.href}auth/authorize\\?[^ ]*redirect_uri=https%3A%2F%2Fmuster\\.example%2Foauth%2Fcallback&`,
        ),
      );
    const state = await stateOf(link);
    for (const path of [
      `/oauth/callback?state=${state}&redirect_uri=https://evil.example`,
      '//evil.example/%2f..',
      '/connect//evil.example',
      '/connect/https://evil.example',
    ]) {
      const { status, location, text } = await open(path);
      expect([status >= 400, location]).toEqual([true, '']);
      expect(text).not.toContain('evil.example');
    }
  });

  test('a host of their own appears in no link', async () => {
    const state = await stateOf(await newLink());
    const page = await new Promise<string>((resolve, reject) => {
      const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example', cookie };
      request(`${admin.url}/oauth/callback?state=${state}`, { headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve(text));
      })
        .on('error', reject)
        .end();
    });
    expect(page).toContain('https://muster.example/connect/');
    expect(page).not.toContain('evil.example');
  });

  test('whoever sees a state does not get the link', async () => {
    const link = await newLink();
    const state = await stateOf(link);
    for (const own of ['', 'muster_flow=', `muster_flow=${state}`, `muster_flow=${'A'.repeat(43)}`]) {
      for (const query of ['', '&code=made-up-code-4714', '&error=access_denied']) {
        const page = await open(`/oauth/callback?state=${state}${query}`, 'GET', own || 'other=1');
        expect(page.text).not.toContain(link.split('/').at(-1));
        expect(page.text).toMatch(/open the link that you were sent once more/i);
      }
      await stateOf(link);
    }
  });

  test('queries of any size are refused, and the server goes on', async () => {
    const state = await stateOf(await newLink());
    expect((await open(`/oauth/callback?code=c&state=${'A'.repeat(10_000)}`)).status).toBe(400);
    expect((await open(`/oauth/callback?code=${'A'.repeat(10_000)}&state=${state}`)).status).toBe(400);
    expect((await open(`/oauth/callback?code=${'A'.repeat(100_000)}&state=${state}`)).status).toBe(431);
    expect((await open(`/oauth/callback?${'a=1&'.repeat(3_000)}`)).status).toBe(400);
    expect((await open('/healthz')).status).toBe(200);
  });

  test('programs that look at a link, or at an answer, spend nothing', async () => {
    const link = await newLink();
    for (const method of ['HEAD', 'GET', 'HEAD', 'GET']) expect((await open(link, method)).status).toBe(302);
    const callback = await consent(link, undefined);
    expect((await open(`${callback}&code=c`, 'HEAD')).status).toBe(404);
    for (const path of [link, callback]) expect((await open(path, 'POST')).status).toBe(404);
    expect(exchanges()).toBe(0);
  });
});

test('every page is private, scriptless and framed by nobody', async () => {
  const link = await newLink();
  const { headers: started } = await open(link);
  expect(started.get('set-cookie')).toMatch(
    /^muster_flow=[\w-]{43}; Path=\/oauth\/callback; Max-Age=900; HttpOnly; SameSite=Lax; Secure$/,
  );
  for (const path of ['/connect/x', '/oauth/callback', `/oauth/callback?code=c&state=${await stateOf(link)}`]) {
    const { headers, text } = await open(path);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'$/,
    );
    expect(headers.get('set-cookie')).toBeNull();
    expect(text).not.toMatch(/<script|<form|<img|javascript:| style=| on\w+=/);
  }
});

test('no token, state or code is in the log', async () => {
  const link = await newLink();
  const callback = await consent(link, undefined);
  await open(`${callback}&code=canary-code-90125`);
  await open('/oauth/callback?code=canary-code-90126&state=canary-state-90127');
  await open('/connect/canary-token-90128');
  const log = admin.log();
  expect(log).toContain('/oauth/callback');
  for (const secret of [
    'canary',
    link.split('/').at(-1)!,
    new URLSearchParams(callback.split('?')[1]).get('state')!,
    'code=',
    'state=',
  ])
    expect(log).not.toContain(secret);
});
