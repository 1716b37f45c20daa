import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.js';
import { waitFor } from '../support/wait-for.js';
import { alter, CLIENT_SECRET, EXPIRED, newCompany, oauthRoom, onboarded, storedRefreshToken } from './fixture.js';
import { oauthSuite } from './suite.js';
import { TokenServer } from './token-server.js';

const { database, server } = await oauthSuite();
const room = oauthRoom(database.db, server);

const onboard = (company = newCompany(), token = server.issue(company.companyId)) =>
  room.onboarding.onboard({ ...company, refreshToken: new Secret(token) });

test('proves the token, stores the pair that it brought, and sends what the service asks for', async () => {
  const company = newCompany();
  const token = server.issue(company.companyId);
  expect(await onboard(company, token)).toEqual({ created: true });
  expect(server.received).toEqual([
    { grant_type: 'refresh_token', refresh_token: token, client_id: 'client-1', client_secret: CLIENT_SECRET },
  ]);
  const stored = await storedRefreshToken(room, company);
  expect(stored).not.toBe(token);
  expect(server.isLive(stored)).toBe(true);
  expect(await room.connections.find(company)).toMatchObject({
    ...company,
    status: 'active',
    expiresAt: expect.any(Date),
  });
  const { rows } = await database.db.pool.query('SELECT environment, company_id FROM mirror.companies WHERE company_id = $1', [
    company.companyId,
  ]);
  expect(rows).toEqual([{ environment: 'test', company_id: company.companyId }]);
});

test('a company that is active or paused: already_onboarded, and its token is not spent', async () => {
  const { company } = await onboarded(room, server);
  const token = server.issue(company.companyId);
  await expect(onboard(company, token)).rejects.toMatchObject({ code: 'already_onboarded' });
  await room.connections.pause(company);
  await expect(onboard(company, token)).rejects.toMatchObject({ code: 'already_onboarded' });
  expect(server.isLive(token)).toBe(true);
});

test('a company that must authorize again gets its new token', async () => {
  const { company } = await onboarded(room, server);
  await room.connections.requireReauthorization(company, 'token_refused');
  await alter(database.db, company, `${EXPIRED}, transient_failures = 7, ambiguous_attempts = 2, attempt_started_at = now()`);
  expect(await onboard(company)).toEqual({ created: false });
  expect(await room.connections.find(company)).toMatchObject({ status: 'active' });
  expect((await room.manager.sourceFor(company).get()).reveal()).toMatch(/^access-token/);
  expect(server.received).toHaveLength(2);
});

test("another company's token: the new pair is kept for that company, nothing is onboarded", async () => {
  const [company, other] = [newCompany(), newCompany()];
  await expect(onboard(company, server.issue(other.companyId))).rejects.toMatchObject({ code: 'token_for_another_company' });
  expect(await room.connections.find(company)).toBeUndefined();
  const { rows } = await database.db.pool.query<{ refresh_token: string }>(
    'SELECT * FROM muster.quarantined_tokens WHERE company_id = $1',
    [other.companyId],
  );
  expect(server.isLive(room.cipher.open(rows[0]?.refresh_token ?? '', other, 'refresh_token').reveal())).toBe(true);
});

describe('failures store nothing', () => {
  test.each([
    [{ status: 400, body: { error: 'invalid_grant' } }, 'token_refused'],
    [{ status: 400, body: { error: 'invalid_request' } }, 'token_refused'],
    [{ status: 400, body: 'The token is not known.', headers: { 'content-type': 'text/plain' } }, 'token_refused'],
    [{ status: 400, body: 'invalid_client', headers: { 'content-type': 'text/plain' } }, 'service_refused'],
    [{ status: 401, body: { error: 'invalid_client' } }, 'service_refused'],
    [{ status: 401, body: '' }, 'service_refused'],
    [{ status: 403, body: '<html>' }, 'service_refused'],
    [{ status: 503 }, 'service_unreachable'],
    [{ status: 429 }, 'service_unreachable'],
    [{ status: 200, body: '<html>' }, 'service_unreachable'],
  ])('%j: %s', async (answer, code) => {
    const company = newCompany();
    server.misdeeds.push({ kind: 'answer', ...answer });
    const error = await onboard(company).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code });
    expect(String(error)).not.toMatch(/refresh-token-|client-secret/);
    expect(await room.connections.find(company)).toBeUndefined();
  });

  test('a lost connection, a server that is not there, an environment that is not configured', async () => {
    server.misdeeds.push({ kind: 'drop', rotate: false });
    await expect(onboard()).rejects.toMatchObject({ code: 'service_unreachable' });
    const gone = await TokenServer.start();
    const lonely = oauthRoom(database.db, gone);
    await gone.stop();
    const request = { ...newCompany(), refreshToken: new Secret('refresh-token-x') };
    await expect(lonely.onboarding.onboard(request)).rejects.toMatchObject({ code: 'service_unreachable' });
    await expect(room.onboarding.onboard({ ...request, environment: 'production' })).rejects.toMatchObject({
      code: 'environment_not_configured',
    });
  });

  test('a grant without a usable access token is kept in quarantine', async () => {
    const company = newCompany();
    server.misdeeds.push({ kind: 'change', change: (grant) => ({ ...grant, access_token: '' }) });
    await expect(onboard(company)).rejects.toMatchObject({ code: 'service_unreachable' });
    const { rows } = await database.db.pool.query('SELECT FROM muster.quarantined_tokens WHERE company_id = $1', [
      company.companyId,
    ]);
    expect(rows).toHaveLength(1);
  });
});

test('the same company, and the same token, side by side: sent once', async () => {
  const company = newCompany();
  const token = server.issue(company.companyId);
  const twin = oauthRoom(database.db, server);
  const request = { ...company, refreshToken: new Secret(token) };
  const results = await Promise.allSettled([
    room.onboarding.onboard(request),
    twin.onboarding.onboard(request),
    twin.onboarding.onboard({ ...request, companyId: randomUUID() }),
  ]);
  expect(server.uses(token)).toBeLessThanOrEqual(2);
  expect(server.most).toBeLessThanOrEqual(1);
  expect(results.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(1);
  for (const result of results) {
    if (result.status === 'rejected')
      expect(['onboarding_in_progress', 'already_onboarded', 'token_refused', 'token_for_another_company']).toContain(
        result.reason.code,
      );
  }
});

test('a company or a token that is being onboarded: 409 at once, and only the first request sends it', async () => {
  const company = newCompany();
  const token = server.issue(company.companyId);
  const twin = oauthRoom(database.db, server);
  const request = { ...company, refreshToken: new Secret(token) };
  const requests = [...Array.from({ length: 11 }, () => request), { ...request, companyId: randomUUID() }];
  let others: PromiseSettledResult<unknown>[] = [];
  server.misdeeds.push({
    kind: 'before',
    work: async () => {
      others = await Promise.allSettled(requests.map((other, n) => (n % 2 ? room : twin).onboarding.onboard(other)));
    },
  });
  expect(await onboard(company, token)).toEqual({ created: true });
  const reason = expect.objectContaining({ code: 'onboarding_in_progress', status: 409 });
  expect(others).toEqual(requests.map(() => ({ status: 'rejected', reason })));
  expect(server.uses(token)).toBe(1);
});

test('thirty at once do not starve the pool, and leave no lock behind', async () => {
  const results = await Promise.all(Array.from({ length: 30 }, () => onboard()));
  expect(results.every(({ created }) => created)).toBe(true);
  // A session that has just committed, or one that vacuums, may have its lock for a moment.
  await waitFor(async () => {
    const { rows } = await database.db.pool.query(
      `SELECT FROM pg_locks WHERE relation = 'muster.locks'::regclass AND pid <> pg_backend_pid()`,
    );
    return rows.length === 0;
  });
  expect(await database.db.prisma.lock.count({ where: { name: { contains: 'onboarding' } } })).toBe(0);
});
