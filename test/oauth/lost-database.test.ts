import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { waitFor } from '../support/wait-for.js';
import {
  alter,
  authorizationFlow,
  EXPIRED,
  newCompany,
  type OauthRoom,
  oauthRoom,
  onboarded,
  stateOf,
  storedRefreshToken,
} from './fixture.js';
import { oauthSuite } from './suite.js';

// The service has rotated the refresh token, and the database takes nothing: the new one exists nowhere else, and must not be lost.

const { database, server } = await oauthSuite();
let room: OauthRoom;
let flow: ReturnType<typeof authorizationFlow>;

beforeAll(async () => {
  await database.db.pool.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$`);
});
beforeEach(() => {
  // A process of its own: what another test's one keeps in memory is not in this one's.
  room = oauthRoom(database.db, server);
  flow = authorizationFlow(room, systemClock);
});
afterEach(() => mend());

/** From now on PostgreSQL refuses each new refresh token in these tables. */
async function refuse(...tables: ('tokens' | 'quarantined_tokens')[]): Promise<void> {
  for (const table of tables)
    await database.db.pool.query(`
      CREATE TRIGGER refuse_insert BEFORE INSERT ON muster.${table} FOR EACH ROW EXECUTE FUNCTION refuse();
      CREATE TRIGGER refuse_update BEFORE UPDATE ON muster.${table} FOR EACH ROW
        WHEN (OLD.refresh_token <> NEW.refresh_token) EXECUTE FUNCTION refuse()`);
}

/** A pair that tokens refused goes to quarantine if that accepts it: where the pair is to be stored, tokens alone are mended. */
async function mend(tables = ['tokens', 'quarantined_tokens']): Promise<void> {
  for (const table of tables)
    await database.db.pool.query(`
      DROP TRIGGER IF EXISTS refuse_insert ON muster.${table}; DROP TRIGGER IF EXISTS refuse_update ON muster.${table}`);
}

const refusedWhenAnswered = (...tables: Parameters<typeof refuse>) =>
  server.misdeeds.push({ kind: 'after', work: () => refuse(...tables) });
const onboard = (company: CompanyKey, token: string) => room.onboarding.onboard({ ...company, refreshToken: new Secret(token) });
const keptIn = (kept: 'quarantine' | 'memory') => ({ code: 'token_not_stored', details: { kept, sql_state: 'P0001' } });
const quarantined = (company: CompanyKey) => database.db.prisma.quarantinedToken.count({ where: company });
const isStoredLive = async (company: CompanyKey) => server.isLive(await storedRefreshToken(room, company));

describe('an onboarding', () => {
  test('whose rows are refused: the new token is set aside, and the same request goes on with it', async () => {
    const company = newCompany();
    const token = server.issue(company.companyId);
    refusedWhenAnswered('tokens');
    await expect(onboard(company, token)).rejects.toMatchObject(keptIn('quarantine'));
    // Again, and with the successor: the next one takes its place.
    await expect(onboard(company, token)).rejects.toMatchObject(keptIn('quarantine'));
    expect(await room.connections.find(company)).toBeUndefined();
    expect(await quarantined(company)).toBe(1);
    await mend();
    expect(await onboard(company, token)).toEqual({ created: true });
    expect(server.uses(token)).toBe(1);
    expect(await isStoredLive(company)).toBe(true);
    expect(await quarantined(company)).toBe(0);
  });

  test('with a database that takes nothing at all: kept in memory, never sent again, stored as soon as can be', async () => {
    const company = newCompany();
    const token = server.issue(company.companyId);
    refusedWhenAnswered('tokens', 'quarantined_tokens');
    await expect(onboard(company, token)).rejects.toMatchObject(keptIn('memory'));
    await expect(onboard(company, token)).rejects.toMatchObject({ code: 'token_not_stored' });
    expect(server.uses(token)).toBe(1);
    await mend(['tokens']);
    await waitFor(async () => (await room.connections.find(company)) !== undefined, { what: 'the company' });
    expect(await isStoredLive(company)).toBe(true);
  });

  test('whose connections are all terminated', async () => {
    const company = newCompany();
    server.misdeeds.push({ kind: 'after', work: terminateAll });
    expect(await onboard(company, server.issue(company.companyId))).toEqual({ created: true });
    expect(await isStoredLive(company)).toBe(true);
  });

  test("with another company's token, which is then onboarded with the same one", async () => {
    const [company, other] = [newCompany(), newCompany()];
    const token = server.issue(other.companyId);
    for (let n = 0; n < 2; n++)
      await expect(onboard(company, token)).rejects.toMatchObject({ code: 'token_for_another_company' });
    expect(await onboard(other, token)).toEqual({ created: true });
    expect(server.uses(token)).toBe(1);
    expect(await isStoredLive(other)).toBe(true);
  });

  test('whose grant has no usable access token: the same request goes on', async () => {
    const company = newCompany();
    const token = server.issue(company.companyId);
    server.misdeeds.push({ kind: 'change', change: (grant) => ({ ...grant, access_token: '' }) });
    await expect(onboard(company, token)).rejects.toMatchObject({ code: 'service_unreachable' });
    expect(await onboard(company, token)).toEqual({ created: true });
    expect(server.uses(token)).toBe(1);
  });
});

describe('an exchange', () => {
  const newLink = async () => (await flow.links.create({ environment: 'test' })).url.split('/').at(-1)!;

  test('whose rows are refused: the token is set aside, and the link stays good', async () => {
    const company = newCompany();
    const link = await newLink();
    const state = await stateOf(flow, link);
    refusedWhenAnswered('tokens');
    const exchange = flow.authorization.finish({ state, code: server.issue(company.companyId) });
    await expect(exchange).rejects.toMatchObject(keptIn('quarantine'));
    expect(await quarantined(company)).toBe(1);
    await mend();
    const again = { state: await stateOf(flow, link), code: server.issue(company.companyId) };
    expect(await flow.authorization.finish(again)).toEqual({ company, created: true });
  });

  test('with a database that takes nothing: the company is there as soon as it does', async () => {
    const company = newCompany();
    const state = await stateOf(flow, await newLink());
    refusedWhenAnswered('tokens', 'quarantined_tokens');
    const exchange = flow.authorization.finish({ state, code: server.issue(company.companyId) });
    await expect(exchange).rejects.toMatchObject(keptIn('memory'));
    await mend(['tokens']);
    await waitFor(async () => (await room.connections.find(company)) !== undefined, { what: 'the company' });
    expect(await isStoredLive(company)).toBe(true);
  });

  test('whose connections are all terminated', async () => {
    const company = newCompany();
    const state = await stateOf(flow, await newLink());
    server.misdeeds.push({ kind: 'after', work: terminateAll });
    expect(await flow.authorization.finish({ state, code: server.issue(company.companyId) })).toMatchObject({ company });
    expect(await isStoredLive(company)).toBe(true);
  });
});

describe('a refresh', () => {
  const FREE = 'lease_owner = NULL, lease_until = NULL';

  test('whose row is refused: the next attempt goes on with the token that was set aside', async () => {
    const { company, token } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    refusedWhenAnswered('tokens');
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject(keptIn('quarantine'));
    await mend();
    await alter(database.db, company, FREE);
    expect((await room.manager.sourceFor(company).get()).reveal()).toMatch(/^access-token/);
    expect(server.uses(token)).toBe(1);
    expect(await isStoredLive(company)).toBe(true);
    expect(await quarantined(company)).toBe(0);
  });

  test('with a database that takes nothing: stored as soon as it does', async () => {
    const { company, token } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    refusedWhenAnswered('tokens', 'quarantined_tokens');
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject(keptIn('memory'));
    await mend(['tokens']);
    await waitFor(async () => (await storedRefreshToken(room, company)) !== token, { what: 'the new pair' });
    expect(await isStoredLive(company)).toBe(true);
    expect((await room.manager.sourceFor(company).get()).reveal()).toMatch(/^access-token/);
    expect(server.uses(token)).toBe(1);
  });

  test('whose connections are all terminated', async () => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'after', work: terminateAll });
    expect((await room.manager.sourceFor(company).get()).reveal()).toMatch(/^access-token/);
    expect(await isStoredLive(company)).toBe(true);
  });
});

test('a process that ends waits until its pairs are on record', async () => {
  const company = newCompany();
  refusedWhenAnswered('tokens', 'quarantined_tokens');
  await expect(onboard(company, server.issue(company.companyId))).rejects.toMatchObject(keptIn('memory'));
  const settled = room.deps.received.settle();
  await mend(['tokens']);
  await settled;
  expect(await isStoredLive(company)).toBe(true);
});

async function terminateAll(): Promise<void> {
  await database.db.pool
    .query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()`)
    .catch(() => undefined);
}
