import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { accessTokenFor, get, postToken, refresh, TestClock, type TokenResponse } from './client.js';

const REDIRECT_URI = 'https://muster.example/oauth/callback';
const HERE = '11111111-2222-4333-8444-555555555555';
const THERE = '66666666-7777-4888-8999-aaaaaaaaaaaa';

let clock: TestClock;
let sandbox: Sandbox;

beforeEach(async () => {
  clock = new TestClock();
  sandbox = await startSandbox({
    clock,
    clientId: 'application-1',
    clientSecret: new Secret('s3cret & more'),
    redirectUris: [REDIRECT_URI],
    companies: [
      { companyId: HERE, name: 'Here & <There>', employees: 3 },
      { companyId: THERE, name: 'There', employees: 3 },
    ],
  });
});

afterEach(() => sandbox.stop());

function authorize(query: Record<string, string> = {}): Promise<Response> {
  const url = new URL('/auth/authorize', sandbox.url);
  const all = { response_type: 'code', client_id: 'application-1', redirect_uri: REDIRECT_URI, state: 'st&te', ...query };
  url.search = new URLSearchParams(all).toString();
  return fetch(url, { redirect: 'manual' });
}

/** What a browser would send: the form's own action, hidden member and choice. */
async function decide(page: string, decision: 'allow' | 'deny', companyId = HERE): Promise<Response> {
  const [, action = ''] = /<form method="post" action="([^"]+)"/.exec(page) ?? [];
  const [, consent = ''] = /name="consent" value="([^"]+)"/.exec(page) ?? [];
  const body = new URLSearchParams({ consent, company_id: companyId, decision });
  return fetch(new URL(action, sandbox.url), { method: 'POST', body, redirect: 'manual' });
}

async function consentCode(companyId = HERE): Promise<string> {
  const answer = await decide(await (await authorize()).text(), 'allow', companyId);
  return new URL(answer.headers.get('location') ?? '').searchParams.get('code') ?? '';
}

function exchange(code: string, redirectUri = REDIRECT_URI): Promise<Response> {
  return postToken(sandbox, { grant_type: 'authorization_code', code, redirect_uri: redirectUri });
}

async function expectError(answer: Response, status: number, error: string): Promise<void> {
  expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([status, error]);
}

test('a member allows access: consent page, code, tokens, data', async () => {
  const page = await authorize({ company_id: THERE.toUpperCase() });
  const text = await page.text();
  expect(page.headers.get('content-type')).toContain('text/html');
  expect(text).toContain(`<option value="${THERE}" selected>`);
  expect(text).toContain('Here &#38; &#60;There&#62;');
  expect(text).toMatch(/scopes[\s\S]*roles/i);

  const back = await decide(text, 'allow', THERE);
  const location = new URL(back.headers.get('location') ?? '');
  expect(back.status).toBe(303);
  expect(location.origin + location.pathname).toBe(REDIRECT_URI);
  expect(location.searchParams.get('state')).toBe('st&te');

  const answer = await exchange(location.searchParams.get('code') ?? '');
  const tokens = (await answer.json()) as TokenResponse;
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(tokens).toMatchObject({ expires_in: 1799, company_id: THERE });
  expect(tokens.token_type.toLowerCase()).toBe('bearer');
  expect(tokens.access_token.split('.')).toHaveLength(3);

  const company = await get(sandbox, tokens.access_token, `/api/companies/${THERE.toUpperCase()}`);
  expect(await company.text()).toBe(sandbox.records(THERE, 'companies')[0]);
});

test('a member who denies comes back with the state and no code, and decides once', async () => {
  const page = await (await authorize()).text();
  const denied = await decide(page, 'deny');
  expect(denied.headers.get('location')).toBe(`${REDIRECT_URI}?state=st%26te`);
  const again = await decide(page, 'allow');
  expect([again.status, again.headers.get('location')]).toEqual([400, null]);
});

test('a browser is never sent to an address that is not registered', async () => {
  const answers = await Promise.all([
    authorize({ redirect_uri: 'https://evil.example/' }),
    authorize({ redirect_uri: `${REDIRECT_URI}/` }),
    authorize({ client_id: 'another' }),
  ]);
  expect(answers.map(({ status, headers }) => [status, headers.get('location')])).toEqual([
    [400, null],
    [400, null],
    [400, null],
  ]);
});

test('any other failure of the request goes back without a code', async () => {
  const answer = await authorize({ response_type: 'token' });
  expect(answer.headers.get('location')).toBe(`${REDIRECT_URI}?state=st%26te`);
});

test('redirect URLs must be https, or http on loopback', async () => {
  await expect(startSandbox({ redirectUris: ['http://muster.example/'] })).rejects.toMatchObject({
    code: 'invalid_configuration',
  });
  const loopback = await startSandbox({
    companies: [],
    redirectUris: ['http://127.0.0.1:1/', 'http://localhost:1/', 'http://[::1]:1/'],
  });
  await loopback.stop();
});

test('a code works once, for its own address, within five minutes', async () => {
  const used = await consentCode();
  expect((await exchange(used)).status).toBe(200);
  await expectError(await exchange(used), 400, 'invalid_grant');

  await expectError(await exchange(await consentCode(), 'https://muster.example/other'), 400, 'invalid_grant');

  const [fresh, late] = [await consentCode(), await consentCode()];
  clock.forward(299);
  expect((await exchange(fresh)).status).toBe(200);
  clock.forward(1);
  await expectError(await exchange(late), 400, 'invalid_grant');
});

test('each refresh spends its token and gives the next; reuse is refused and counted', async () => {
  const first = sandbox.issueRefreshToken(HERE).reveal();
  const second = (await (await refresh(sandbox, first)).json()) as TokenResponse;
  expect(second.refresh_token).not.toBe(first);
  const third = (await (await refresh(sandbox, second.refresh_token)).json()) as TokenResponse;
  expect(third.company_id).toBe(HERE);
  expect(third.token_type).not.toBe(second.token_type);
  expect(sandbox.reusedRefreshTokens).toBe(0);

  await expectError(await refresh(sandbox, first), 400, 'invalid_grant');
  expect(sandbox.reusedRefreshTokens).toBe(1);
  expect((await refresh(sandbox, third.refresh_token)).status).toBe(200);
});

test('two refreshes with one token side by side: one wins', async () => {
  const token = sandbox.issueRefreshToken(HERE).reveal();
  const answers = await Promise.all([refresh(sandbox, token), refresh(sandbox, token)]);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400]);
});

test('the token endpoint is strict about its form', async () => {
  const form = { grant_type: 'refresh_token', refresh_token: 'x' };
  await expectError(await postToken(sandbox, { ...form, client_secret: 'wrong' }), 401, 'invalid_client');
  await expectError(await postToken(sandbox, { ...form, grant_type: 'password' }), 400, 'unsupported_grant_type');
  await expectError(await postToken(sandbox, { grant_type: 'refresh_token' }), 400, 'invalid_request');
  await expectError(await postToken(sandbox, form), 400, 'invalid_grant');
  const init = { method: 'POST', body: JSON.stringify(form), headers: { 'content-type': 'application/json' } };
  await expectError(await fetch(new URL('/auth/token', sandbox.url), init), 400, 'invalid_request');
  const wrongPath = await fetch(new URL('/auth/authentication/token', sandbox.url), {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  expect(wrongPath.status).toBe(404);
});

test('an access token opens its own company until it expires', async () => {
  const token = await accessTokenFor(sandbox, HERE);
  const status = async (bearer: string, companyId = HERE) => (await get(sandbox, bearer, `/api/companies/${companyId}`)).status;
  expect(await status(token)).toBe(200);
  expect(await status(token, THERE)).toBe(401);
  expect(await status(token, 'ffffffff-0000-4000-8000-000000000000')).toBe(401);
  expect(await status(`${token.slice(0, -2)}xx`)).toBe(401);
  clock.forward(1798);
  expect(await status(token)).toBe(200);
  clock.forward(1);
  const expired = await get(sandbox, token, `/api/companies/${HERE}/employees`, { skip: '0', $take: '1' });
  expect(expired.status).toBe(401);
  expect(expired.headers.get('www-authenticate')).toContain('error="invalid_token"');
  const bare = await fetch(new URL(`/api/companies/${HERE}`, sandbox.url));
  expect([bare.status, bare.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="sandbox"']);
});

test('revoking on the control page ends every token of that company until it is authorized again', async () => {
  const refreshToken = sandbox.issueRefreshToken(HERE).reveal();
  const token = await accessTokenFor(sandbox, HERE);
  const other = await accessTokenFor(sandbox, THERE);

  const page = await (await fetch(new URL('/sandbox/', sandbox.url))).text();
  const [, action = ''] = /action="([^"]+11111111[^"]+revoke)"/.exec(page) ?? [];
  const after = await (await fetch(new URL(action, sandbox.url), { method: 'POST' })).text();
  expect(after).toContain('<td>revoked</td>');

  expect((await get(sandbox, token, `/api/companies/${HERE}`)).status).toBe(401);
  expect((await get(sandbox, other, `/api/companies/${THERE}`)).status).toBe(200);
  await expectError(await refresh(sandbox, refreshToken), 400, 'invalid_grant');

  const tokens = (await (await exchange(await consentCode(HERE))).json()) as TokenResponse;
  expect((await get(sandbox, tokens.access_token, `/api/companies/${HERE}`)).status).toBe(200);
  expect((await get(sandbox, token, `/api/companies/${HERE}`)).status).toBe(401);
  await expectError(await refresh(sandbox, refreshToken), 400, 'invalid_grant');
});

describe('PKCE', () => {
  const verifier = 'v'.repeat(43);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const asked = { code_challenge: challenge, code_challenge_method: 'S256' };

  async function redeem(query: Record<string, string>, proof: Record<string, string>): Promise<Response> {
    const answer = await decide(await (await authorize(query)).text(), 'allow', HERE);
    const code = new URL(answer.headers.get('location') ?? '').searchParams.get('code') ?? '';
    return postToken(sandbox, { grant_type: 'authorization_code', code, redirect_uri: REDIRECT_URI, ...proof });
  }

  test('the code is given to whoever knows the verifier', async () => {
    expect((await redeem(asked, { code_verifier: verifier })).status).toBe(200);
    expect((await redeem({}, {})).status).toBe(200);
  });

  test('and to nobody else', async () => {
    for (const proof of [{}, { code_verifier: 'w'.repeat(43) }, { code_verifier: challenge }, { code_verifier: '' }])
      expect((await redeem(asked, proof)).status).toBe(400);
    expect(await (await redeem({}, { code_verifier: verifier })).json()).toMatchObject({ error: 'invalid_grant' });
  });

  test('a challenge that proves nothing goes back without a code', async () => {
    for (const query of [
      { code_challenge: challenge },
      { ...asked, code_challenge_method: 'plain' },
      { ...asked, code_challenge: 'short' },
    ]) {
      const { headers } = await authorize(query);
      expect(new URL(headers.get('location') ?? '').searchParams.has('code')).toBe(false);
    }
  });
});
