import { createHash, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import type { Authorization, AuthorizationFailure } from '../../src/oauth/authorization.js';
import { Keyring } from '../../src/oauth/cipher.js';
import type { ConnectLinks } from '../../src/oauth/connect-links.js';
import { registerSecret } from '../../src/observability/secret-registry.js';
import {
  alter,
  authorizationFlow,
  EXPIRED,
  newCompany,
  oauthRoom,
  onboarded,
  startedFlow,
  stateOf as stateOfFlow,
  storedRefreshToken,
  TESTER,
} from './fixture.js';
import { oauthSuite } from './suite.js';
import type { Misdeed } from './token-server.js';

const DAY = 24 * 3_600_000;
const key = (id: string) => ({ id, key: new Secret(Buffer.alloc(32, id).toString('base64')) });

const { database, server } = await oauthSuite();
const room = oauthRoom(database.db, server);
let passed = 0;
const clock: Clock = { ...systemClock, now: () => Date.now() + passed };

/** The flow with the given keys, as one process has it. */
function flow(...keys: string[]) {
  return authorizationFlow(room, clock, new Keyring(keys.map(key)));
}
let links: ConnectLinks;
let authorization: Authorization;

beforeEach(() => {
  passed = 0;
  ({ links, authorization } = flow('k1'));
});

const tokenOf = (url: string) => url.slice(url.lastIndexOf('/') + 1);
const codeFor = (companyId: string) => server.issue(companyId);

async function newLink(company?: Partial<CompanyKey>): Promise<string> {
  return tokenOf((await links.create({ environment: 'test', companyId: company?.companyId })).url);
}

const stateOf = (token: string) => stateOfFlow({ authorization }, token);
const flowOf = (token: string) => startedFlow({ authorization }, token);

/** Through the whole flow, with this company chosen on the consent screen. */
async function consent(token: string, companyId: string) {
  return authorization.finish({ ...(await flowOf(token)), code: codeFor(companyId) });
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');
const without = (member: string) => (grant: Record<string, unknown>) => ({ ...grant, [member]: undefined });

async function quarantined(companyId: string): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ refresh_token: string }>(
    'SELECT refresh_token FROM muster.quarantined_tokens WHERE company_id = $1',
    [companyId],
  );
  return rows.map((row) => room.cipher.open(row.refresh_token, { environment: 'test', companyId }, 'refresh_token').reveal());
}

describe('a link', () => {
  test('leads to the consent screen with its company chosen, and nothing of the link is written', async () => {
    const company = newCompany();
    const asked = Date.now();
    const { url, expiresAt } = await links.create(company);
    expect(url).toMatch(/^https:\/\/muster\.example\/base\/connect\/[\w-]{43}$/);
    expect(expiresAt.getTime() - asked).toBeGreaterThanOrEqual(7 * DAY - 1);
    const dump = () => database.db.pool.query('SELECT * FROM muster.connect_links ORDER BY id').then(({ rows }) => rows);
    const before = await dump();
    const started = await authorization.start(tokenOf(url));
    if (!('location' in started)) throw new Error(started.failure);
    expect(`${started.location.origin}${started.location.pathname}`).toBe(`${server.url.href}/auth/authorize`);
    expect(Object.fromEntries(started.location.searchParams)).toEqual({
      response_type: 'code',
      client_id: 'client-1',
      redirect_uri: 'http://127.0.0.1/oauth/callback',
      state: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      company_id: company.companyId,
    });
    expect(await dump()).toEqual(before);
    expect(JSON.stringify(before)).not.toContain(tokenOf(url));
  });

  test('without a company names none', async () => {
    const started = await authorization.start(await newLink());
    expect('location' in started && started.location.searchParams.has('company_id')).toBe(false);
  });

  test('is refused when it is unknown, mangled, expired, or for an environment that is not configured', async () => {
    const token = await newLink();
    for (const unknown of [
      '',
      'x',
      `${token}x`,
      token.slice(1),
      `${token.slice(0, -1)}!`,
      randomUUID(),
      '\0',
      token.toUpperCase(),
    ])
      expect(await authorization.start(unknown)).toEqual({ failure: 'unknown_link' });
    passed = 7 * DAY + 1000;
    expect(await authorization.start(token)).toEqual({ failure: 'expired_link', environment: 'test' });
    await expect(links.create({ environment: 'production' })).rejects.toMatchObject({ code: 'environment_not_configured' });
  });

  test('survives a change of the key; what it would say of itself does not', async () => {
    const token = await newLink();
    const state = await stateOf(token);
    ({ links, authorization } = flow('k2', 'k1'));
    expect(await stateOf(token)).not.toBe(state);
    expect(await authorization.finish({ state, code: 'refused' })).toEqual({ failure: 'refused_code', environment: 'test' });
    ({ links, authorization } = flow('k2'));
    expect(await authorization.finish({ state, code: 'refused' })).toEqual({ failure: 'unknown_state' });
  });
});

describe('a completed consent', () => {
  test('connects the company that was chosen when the link names none', async () => {
    const { companyId, environment } = newCompany();
    const token = await newLink();
    expect(await consent(token, companyId)).toEqual({ company: { environment, companyId }, created: true });
    expect(server.received).toEqual([
      expect.objectContaining({ grant_type: 'authorization_code', redirect_uri: 'http://127.0.0.1/oauth/callback' }),
    ]);
    expect(server.isLive(await storedRefreshToken(room, { environment, companyId }))).toBe(true);
    expect(await authorization.start(token)).toEqual({ failure: 'completed_link', environment });
  });

  test('authorizes a company again, and the address that was shown for it ends', async () => {
    const { company } = await onboarded(room, server);
    const shown = async () => (await links.reauthorizationLinks([company])).get(`test/${company.companyId}`)?.url;
    expect(await shown()).toBeUndefined();
    await room.connections.requireReauthorization(company, 'token_refused');
    const url = (await shown())!;
    expect(await shown()).toBe(url);
    expect(await consent(tokenOf(url), company.companyId)).toEqual({ company, created: false });
    expect(await room.connections.find(company)).toMatchObject({ status: 'active' });
    expect(await shown()).toBeUndefined();
    expect(await authorization.start(tokenOf(url))).toMatchObject({ failure: 'completed_link' });
    await room.connections.requireReauthorization(company, 'token_refused');
    expect(await shown()).not.toBe(url);
    expect(await shown()).toMatch(/connect/);
  });

  test('replaces the pair of an active company, and an answer that comes late does not overwrite it', async () => {
    const { company } = await onboarded(room, server);
    const token = await newLink(company);
    await alter(database.db, company, EXPIRED);
    let newer = '';
    server.misdeeds.push({
      kind: 'after',
      work: async () => {
        expect(await consent(token, company.companyId)).toEqual({ company, created: false });
        newer = await storedRefreshToken(room, company);
      },
    });
    await room.manager.sourceFor(company).get();
    expect(await storedRefreshToken(room, company)).toBe(newer);
    expect(await quarantined(company.companyId)).toHaveLength(1);
  });

  test('connects the company that the link names when the service names none', async () => {
    const company = newCompany();
    server.misdeeds.push({ kind: 'change', change: without('company_id') });
    expect(await consent(await newLink(company), company.companyId)).toEqual({ company, created: true });
  });

  test('leaves a paused company paused', async () => {
    const { company } = await onboarded(room, server);
    await room.connections.pause(company);
    expect(await consent(await newLink(company), company.companyId)).toEqual({ company, created: false });
    expect(await room.connections.find(company)).toMatchObject({ status: 'paused' });
  });

  test('leaves nothing in plain text in the database', async () => {
    const { companyId } = newCompany();
    const token = await newLink();
    const [state, code] = [await stateOf(token), codeFor(companyId)];
    await authorization.finish({ state, code });
    const { pool } = database.db;
    const { rows } = await pool.query<{ name: string }>(
      `SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname IN ('muster', 'mirror')`,
    );
    const texts = await Promise.all(
      rows.map(({ name }) => pool.query<{ text: string }>(`SELECT row_to_json(t)::text AS text FROM ${name} t`)),
    );
    const dump = texts.flatMap((result) => result.rows.map(({ text }) => text)).join('\n');
    expect(dump).toContain(companyId);
    for (const secret of [token, state, code, 'refresh-token-', 'access-token-']) expect(dump).not.toContain(secret);
  });

  test('is on record', async () => {
    const { companyId } = newCompany();
    await consent(await newLink(), companyId);
    expect(await database.db.prisma.auditEntry.findMany({ where: { companyId } })).toMatchObject([
      { actor: 'connect link', action: 'company.connect', environment: 'test', details: { outcome: 'done' } },
    ]);
  });
});

describe('what connects nothing', () => {
  test('another company than the link names: its pair is kept aside, and the link stays good', async () => {
    const [company, other] = [newCompany(), newCompany()];
    const token = await newLink(company);
    const again = `https://muster.example/base/connect/${token}`;
    expect(await consent(token, other.companyId)).toEqual({ failure: 'wrong_company', ...company, again });
    expect(await room.connections.find(other)).toBeUndefined();
    const [kept] = await quarantined(other.companyId);
    expect(server.isLive(kept!)).toBe(true);
    expect(await consent(token, company.companyId)).toEqual({ company, created: true });
  });

  test('no code, from our flow or from nowhere', async () => {
    const token = await newLink();
    const own = await flowOf(token);
    const again = `https://muster.example/base/connect/${token}`;
    for (const code of [undefined, ''])
      expect(await authorization.finish({ ...own, code })).toEqual({ failure: 'cancelled', environment: 'test', again });
    expect(await authorization.finish({})).toEqual({ failure: 'cancelled' });
    expect(await authorization.finish({ state: 'forged' })).toEqual({ failure: 'cancelled' });
    expect(server.received).toEqual([]);
  });

  test('a state that is forged, altered, or too old', async () => {
    const token = await newLink();
    const { state, mark } = await flowOf(token);
    const bytes = Buffer.from(state, 'base64url');
    const altered = [...bytes.keys()].map((at) => {
      const copy = Buffer.from(bytes);
      copy[at]! ^= 1;
      return copy.toString('base64url');
    });
    for (const forged of ['', 'a', 'A'.repeat(120), 'A'.repeat(100_000), state.slice(0, -2), `${state}AAAA`, ...altered])
      expect(await authorization.finish({ state: forged, code: 'c' })).toEqual({ failure: 'unknown_state' });
    passed = 15 * 60_000 + 1;
    expect(await authorization.finish({ state, mark, code: 'c' })).toMatchObject({
      failure: 'expired_state',
      again: expect.anything(),
    });
    expect(server.received).toEqual([]);
  });

  test('a code that the service refuses: it is not sent again, and a fresh start works', async () => {
    const token = await newLink();
    const own = await flowOf(token);
    const code = codeFor(newCompany().companyId);
    server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'invalid_grant' } });
    expect(await authorization.finish({ ...own, code })).toMatchObject({ failure: 'refused_code', again: expect.anything() });
    expect(await authorization.finish({ ...own, code })).toMatchObject({ failure: 'spent_state', again: expect.anything() });
    expect(server.received).toHaveLength(1);
    expect(await consent(token, newCompany().companyId)).toMatchObject({ created: true });
  });

  test.each([
    ['service_down', { kind: 'answer', status: 503 }],
    ['service_down', { kind: 'drop', rotate: false }],
    ['service_down', { kind: 'answer', status: 200, body: 'no JSON' }],
    ['refused_code', { kind: 'answer', status: 400, body: { error: 'invalid_request' } }],
    ['refused_code', { kind: 'answer', status: 400, body: 'The code has expired.', headers: { 'content-type': 'text/plain' } }],
    ['not_configured', { kind: 'answer', status: 400, body: { code: 'invalid_client' } }],
    ['not_configured', { kind: 'answer', status: 401, body: { error: 'invalid_client' } }],
    ['not_configured', { kind: 'answer', status: 403, body: '<html>' }],
    ['unusable_grant', { kind: 'change', change: without('refresh_token') }],
    ['unusable_grant', { kind: 'change', change: without('access_token') }],
    ['unusable_grant', { kind: 'change', change: without('company_id') }],
  ] satisfies [AuthorizationFailure, Misdeed][])('%s: %j', async (failure, misdeed) => {
    const token = await newLink();
    const { companyId } = newCompany();
    server.misdeeds.push(misdeed);
    expect(await consent(token, companyId)).toMatchObject({ failure, again: expect.anything() });
    expect(server.received).toHaveLength(1);
    expect(await room.connections.find({ environment: 'test', companyId })).toBeUndefined();
    expect(await consent(token, companyId)).toMatchObject({ created: true });
  });

  test('an unnamed pair is kept aside, too', async () => {
    const before = (await quarantined('00000000-0000-0000-0000-000000000000')).length;
    server.misdeeds.push({ kind: 'change', change: without('company_id') });
    await consent(await newLink(), newCompany().companyId);
    expect(await quarantined('00000000-0000-0000-0000-000000000000')).toHaveLength(before + 1);
  });

  test('a link that was withdrawn with its company, even while the code is being exchanged', async () => {
    const { company } = await onboarded(room, server);
    const token = await newLink(company);
    server.misdeeds.push({ kind: 'after', work: () => room.connections.remove(company, TESTER) });
    const state = await stateOf(token);
    expect(await authorization.finish({ state, code: codeFor(company.companyId) })).toMatchObject({ failure: 'removed_company' });
    expect(await room.connections.find(company)).toBeUndefined();
    expect(await quarantined(company.companyId)).toEqual([]);
    expect(await authorization.finish({ state, code: 'c' })).toEqual({ failure: 'unknown_state' });
    expect(await authorization.start(token)).toEqual({ failure: 'unknown_link' });
  });
});

describe('at once', () => {
  test('of many answers with the same state, one is exchanged', async () => {
    const { companyId } = newCompany();
    const token = await newLink();
    const state = await stateOf(token);
    const code = codeFor(companyId);
    const others = flow('k1');
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? authorization : others.authorization).finish({ state, code })),
    );
    expect(server.received).toHaveLength(1);
    expect(outcomes.filter((outcome) => 'company' in outcome)).toHaveLength(1);
    for (const outcome of outcomes)
      if ('failure' in outcome) expect(['spent_state', 'completed_link']).toContain(outcome.failure);
    expect(await authorization.finish({ state, code })).toMatchObject({ failure: 'completed_link' });
  });

  test('of two flows of one link, one connects a company and the other spends no code', async () => {
    const token = await newLink();
    const [first, second] = [await stateOf(token), await stateOf(token)];
    const [a, b] = [newCompany().companyId, newCompany().companyId];
    const outcomes = await Promise.all([
      authorization.finish({ state: first, code: codeFor(a) }),
      authorization.finish({ state: second, code: codeFor(b) }),
    ]);
    expect(outcomes.filter((outcome) => 'company' in outcome)).toHaveLength(1);
    expect(server.received).toHaveLength(1);
  });

  test('a flow that was started while another one waits for its answer takes the link from it', async () => {
    const token = await newLink();
    const [a, b] = [newCompany().companyId, newCompany().companyId];
    server.misdeeds.push({ kind: 'after', work: async () => expect(await consent(token, b)).toMatchObject({ created: true }) });
    expect(await consent(token, a)).toMatchObject({ failure: 'spent_state' });
    expect(await quarantined(a)).toHaveLength(1);
  });
});

describe('a state', () => {
  test('tells nothing: it is random, kept as a hash, and does not show the link', async () => {
    const token = await newLink();
    const [first, second] = [await flowOf(token), await flowOf(token)];
    expect(first.state).not.toBe(second.state);
    const link = await database.db.prisma.connectLink.findFirstOrThrow({ orderBy: { createdAt: 'desc' } });
    const bytes = Buffer.from(first.state, 'base64url').toString('hex');
    for (const part of [link.id.replaceAll('-', ''), Buffer.from(token, 'base64url').toString('hex')])
      expect(bytes).not.toContain(part);
    const rows = await database.db.prisma.authorizationFlow.findMany({ where: { linkId: link.id } });
    expect(rows.map(({ stateHash }) => stateHash).toSorted()).toEqual(
      [first, second].map(({ state }) => sha256(state)).toSorted(),
    );
    // A browser that has seen the state, but not the browser's mark, or that of another flow.
    for (const mark of [undefined, '', second.mark, first.state, 'A'.repeat(43)])
      expect(JSON.stringify(await authorization.finish({ state: first.state, mark }))).not.toContain('connect/');
  });

  test('is kept for the newest twenty flows of a link, and goes with the link', async () => {
    const company = newCompany();
    const token = await newLink(company);
    const states = [];
    for (let n = 0; n < 25; n++, passed += 10) states.push(await stateOf(token));
    expect(await authorization.finish({ state: states[4], code: 'c' })).toEqual({ failure: 'unknown_state' });
    expect(await authorization.finish({ state: states[5], code: codeFor(company.companyId) })).toMatchObject({ company });
    await room.connections.remove(company, TESTER);
    expect(await authorization.finish({ state: states[6], code: 'c' })).toEqual({ failure: 'unknown_state' });
  });
});

describe('PKCE', () => {
  test('the verifier fits the challenge, is new for each flow, and is in no address and no table', async () => {
    const token = await newLink();
    const challenges: string[] = [];
    for (let n = 0; n < 2; n++) {
      const started = await authorization.start(token);
      if (!('location' in started)) throw new Error(started.failure);
      const { searchParams, href } = started.location;
      challenges.push(searchParams.get('code_challenge')!);
      // Another process, in which the key is no longer the first one.
      await flow('k2', 'k1').authorization.finish({ state: searchParams.get('state')!, code: 'refused' });
      const verifier = server.received.at(-1)!['code_verifier']!;
      expect(verifier).toMatch(/^[\w.~-]{43,128}$/);
      expect(sha256(verifier)).toBe(challenges.at(-1));
      expect(href).not.toContain(verifier);
      const rows = await database.db.prisma.authorizationFlow.findMany();
      expect(JSON.stringify(rows)).not.toContain(verifier);
    }
    expect(challenges[0]).not.toBe(challenges[1]);
  });

  test('a scope is named where one is set, and only there', async () => {
    const provider = { ...room.provider, scope: 'offline_access employees.read' };
    const scoped = authorizationFlow({ ...room, provider }, clock, new Keyring([key('k1')]));
    const token = (await scoped.links.create({ environment: 'test' })).url.split('/').at(-1)!;
    for (const [{ authorization: own }, scope] of [
      [scoped, 'offline_access employees.read'],
      [flow('k1'), null],
    ] as const) {
      const started = await own.start(token);
      expect('location' in started && started.location.searchParams.get('scope')).toBe(scope);
    }
  });
});

describe('the operator is told why', () => {
  const lastEntry = async () =>
    (await database.db.prisma.auditEntry.findFirstOrThrow({ where: { action: 'company.connect' }, orderBy: { id: 'desc' } }))
      .details;

  test.each([
    ['unusable_grant', 'refresh_token is missing', { kind: 'change', change: without('refresh_token') }],
    ['unusable_grant', 'access_token is missing', { kind: 'change', change: without('access_token') }],
    ['unusable_grant', 'company_id is missing', { kind: 'change', change: without('company_id') }],
    ['unusable_grant', 'company_id is of no use', { kind: 'change', change: (grant) => ({ ...grant, company_id: 'x' }) }],
    ['not_configured', 'invalid_client', { kind: 'answer', status: 401, body: { error: 'invalid_client' } }],
    ['refused_code', 'invalid_grant', { kind: 'answer', status: 400, body: { error: 'invalid_grant' } }],
    ['refused_code', 'invalid_request', { kind: 'answer', status: 400, body: { error: 'invalid_request' } }],
    ['service_down', 'status 503', { kind: 'answer', status: 503 }],
    ['service_down', 'the answer is no JSON object', { kind: 'answer', status: 200, body: '<html>' }],
  ] satisfies [AuthorizationFailure, string, Misdeed][])('%s: %s', async (outcome, reason, misdeed) => {
    server.misdeeds.push(misdeed);
    const failed = await consent(await newLink(), newCompany().companyId);
    expect(JSON.stringify(failed)).not.toContain(reason);
    expect(await lastEntry()).toMatchObject({ outcome, reason });
  });

  test('what the service put into the redirect: one clean line, once, and no token', async () => {
    const state = await stateOf(await newLink());
    const token = server.issue(newCompany().companyId);
    registerSecret(token);
    const errorDescription = `The member\r\nsaid \u001b[31mno\u202e; ${token} ${'x'.repeat(5_000)}`;
    const failed = await authorization.finish({ state, error: 'access_denied', errorDescription });
    expect(failed).toEqual({ failure: 'cancelled', environment: 'test' });
    const entry = (await lastEntry()) as Record<string, string>;
    expect(entry).toMatchObject({ outcome: 'cancelled', error: 'access_denied' });
    expect(entry['error_description']).toMatch(/^The member said \[31mno ; \[redacted\] x+…$/);
    expect(entry['error_description']!.length).toBeLessThanOrEqual(301);
    const count = () => database.db.prisma.auditEntry.count({ where: { action: 'company.connect' } });
    const before = await count();
    await authorization.finish({ state, error: 'access_denied' });
    await authorization.finish({ state: 'A'.repeat(43), error: 'access_denied' });
    expect(await count()).toBe(before);
  });
});
