import { beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { findToken } from '../../src/db/tables/tokens.js';
import { waitFor } from '../support/wait-for.js';
import {
  alter,
  authorizeElsewhere,
  DUE,
  EXPIRED,
  newCompany,
  type OauthRoom,
  oauthRoom,
  onboarded,
  patient,
  storedRefreshToken,
  TESTER,
} from './fixture.js';
import { oauthSuite } from './suite.js';
import { TokenServer } from './token-server.js';

const { database, server } = await oauthSuite();
let room: OauthRoom;

beforeEach(() => {
  room = oauthRoom(database.db, server);
});

const status = async (company: CompanyKey) => {
  const found = await room.connections.find(company);
  return [found?.status, found?.reauthorizationReason];
};

/** A grant that lacks a member. */
const without = (name: string) => (grant: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(grant).filter(([member]) => member !== name));

describe('a token in force', () => {
  test('is given without asking the service', async () => {
    const { company } = await onboarded(room, server);
    const source = room.manager.sourceFor(company);
    const [first, second] = [await source.get(), await source.get()];
    expect(first.reveal()).toMatch(/^access-token-/);
    expect(second.reveal()).toBe(first.reveal());
    expect(server.received).toHaveLength(1);
  });

  test('is refreshed when due, and the new pair is stored encrypted', async () => {
    const { company, token } = await onboarded(room, server);
    const before = await room.manager.sourceFor(company).get();
    const { epoch } = await findToken(database.db.prisma, company);
    await alter(database.db, company, DUE);
    const after = await room.manager.sourceFor(company).get();
    expect(after.reveal()).not.toBe(before.reveal());
    expect((await findToken(database.db.prisma, company)).epoch).toBeGreaterThan(epoch);
    expect(server.isLive(await storedRefreshToken(room, company))).toBe(true);
    expect(server.uses(token)).toBe(1);
    const { rows } = await database.db.pool.query('SELECT * FROM muster.tokens');
    expect(JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).not.toMatch(/-of-/);
    expect(rows[0]).toMatchObject({ lease_owner: null, lease_until: null, attempt_started_at: null, transient_failures: 0 });
  });

  test('lasts as long as the service says, and is refreshed a fifth before', async () => {
    server.lifetime = 3000;
    const { company } = await onboarded(room, server);
    server.lifetime = 1799;
    const { rows } = await database.db.pool.query<{ life: number; until: number }>(
      `SELECT round(extract(epoch FROM expires_at - now()))::int AS life, round(extract(epoch FROM refresh_at - now()))::int AS until FROM muster.tokens`,
    );
    expect(rows[0]?.life).toBeGreaterThan(2990);
    expect(rows[0]?.until).toBeGreaterThan(2360);
    expect(rows[0]?.until).toBeLessThanOrEqual(2370);
    expect(company.environment).toBe('test');
  });

  test('still serves while refreshing ahead fails', async () => {
    const { company } = await onboarded(room, server);
    const before = await room.manager.sourceFor(company).get();
    await alter(database.db, company, DUE);
    server.misdeeds.push({ kind: 'answer', status: 503 });
    const { manager } = patient(room);
    expect((await manager.sourceFor(company).get()).reveal()).toBe(before.reveal());
    expect((await manager.sourceFor(company).get()).reveal()).toBe(before.reveal());
    expect(server.received).toHaveLength(2);
  });
});

describe('one refresh for all', () => {
  test('eight processes with pools of their own, twenty times', async () => {
    const { company } = await onboarded(room, server);
    const databases = Array.from({ length: 8 }, () => openDatabase({ url: database.url, poolSize: 2 }));
    const managers = databases.map((db) => oauthRoom(db, server).manager);
    try {
      for (let round = 0; round < 20; round++) {
        await alter(database.db, company, round % 2 ? DUE : EXPIRED);
        const sent = server.received.length;
        const tokens = await Promise.all(managers.map((manager) => manager.sourceFor(company).get()));
        expect(new Set(tokens.map((token) => token.reveal())).size).toBe(1);
        expect(server.received.length - sent).toBe(1);
      }
    } finally {
      await Promise.all(databases.map((db) => db.close()));
    }
    expect(server.most).toBe(1);
    expect(await status(company)).toEqual(['active', null]);
  });

  test('ten requests of one process that all saw a 401', async () => {
    const { company } = await onboarded(room, server);
    const source = room.manager.sourceFor(company);
    const stale = await source.get();
    const renewed = await Promise.all(Array.from({ length: 10 }, () => source.renew(stale)));
    expect(new Set(renewed.map((token) => token.reveal())).size).toBe(1);
    expect(renewed[0]?.reveal()).not.toBe(stale.reveal());
    expect(server.received).toHaveLength(2);
    // One that comes late, with the token of then.
    expect((await source.renew(stale)).reveal()).toBe(renewed[0]?.reveal());
    expect(server.received).toHaveLength(2);
  });

  test('within a process only one caller asks for the lease', async () => {
    const { company } = await onboarded(room, server);
    let asked = 0;
    const prisma = new Proxy(database.db.prisma, {
      get: (target, name) => {
        if (name === '$queryRaw') asked += 1;
        return Reflect.get(target, name) as unknown;
      },
    });
    const source = oauthRoom({ ...database.db, prisma }, server).manager.sourceFor(company);
    const stale = await source.get();
    asked = 0;
    // Ten reads; a lease and a read of the one that refreshes. The answer waits until all ten have looked at the token.
    server.misdeeds.push({ kind: 'before', work: async () => void (await waitFor(() => asked >= 12)) });
    await Promise.all(Array.from({ length: 10 }, () => source.renew(stale)));
    expect(asked).toBe(12);
  });

  test('a lease that moved the epoch without a renewal does not hide that a token is stale', async () => {
    const { company } = await onboarded(room, server);
    const source = room.manager.sourceFor(company);
    const stale = await source.get();
    await alter(database.db, company, 'epoch = epoch + 5');
    expect((await source.renew(stale)).reveal()).not.toBe(stale.reveal());
  });

  test('side by side for many companies', async () => {
    const companies = await Promise.all(Array.from({ length: 20 }, () => onboarded(room, server)));
    await database.db.pool.query('UPDATE muster.tokens SET refresh_at = now()');
    expect((await room.manager.due(100)).length).toBe(20);
    expect((await room.manager.due(7)).length).toBe(7);
    await Promise.all(companies.map(({ company }) => room.manager.refresh(company)));
    expect(await room.manager.due(100)).toEqual([]);
    expect(server.received).toHaveLength(40);
    await Promise.all(companies.map(({ company }) => room.manager.refresh(company)));
    expect(server.received).toHaveLength(40);
  });
});

describe('what the answer may lack', () => {
  test('no refresh_token: the old one stays', async () => {
    const { company, token } = await onboarded(room, server);
    await alter(database.db, company, DUE);
    server.misdeeds.push({ kind: 'change', change: without('refresh_token') });
    await room.manager.refresh(company);
    expect(await storedRefreshToken(room, company)).toBe(token);
    expect(await status(company)).toEqual(['active', null]);
  });

  test('no expires_in: half an hour', async () => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'change', change: without('expires_in') });
    const before = Date.now();
    await room.manager.sourceFor(company).get();
    const expiresAt = (await room.connections.find(company))?.expiresAt?.getTime() ?? 0;
    expect(expiresAt - before).toBeGreaterThan(29 * 60_000);
    expect(expiresAt - Date.now()).toBeLessThan(31 * 60_000);
  });

  test('bearer in lower case, company_id in upper case or absent', async () => {
    const { company } = await onboarded(room, server);
    for (const change of [(grant: Record<string, unknown>) => ({ ...grant, token_type: 'bearer' }), without('company_id')]) {
      await alter(database.db, company, EXPIRED);
      server.misdeeds.push({ kind: 'change', change });
      await room.manager.sourceFor(company).get();
    }
    expect(server.received).toHaveLength(3);
  });

  test('no access token, or one of another type: the new refresh token is kept all the same', async () => {
    const { company } = await onboarded(room, server);
    for (const change of [without('access_token'), (grant: Record<string, unknown>) => ({ ...grant, token_type: 'mac' })]) {
      await alter(database.db, company, EXPIRED);
      server.misdeeds.push({ kind: 'change', change });
      await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_error', retryable: true });
      expect(server.isLive(await storedRefreshToken(room, company))).toBe(true);
    }
    await alter(database.db, company, EXPIRED);
    await room.manager.sourceFor(company).get();
    expect(await status(company)).toEqual(['active', null]);
  });

  test("another company's token: kept in quarantine, and the company must authorize again", async () => {
    const { company } = await onboarded(room, server);
    const other = newCompany().companyId;
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'change', change: (grant) => ({ ...grant, company_id: other }) });
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    expect(await status(company)).toEqual(['reauthorization_required', 'token_for_another_company']);
    const { rows } = await database.db.pool.query<{ company_id: string; refresh_token: string }>(
      'SELECT * FROM muster.quarantined_tokens',
    );
    expect(rows.map(({ company_id }) => company_id)).toContain(other);
    const sealed = rows.find(({ company_id }) => company_id === other)?.refresh_token ?? '';
    expect(server.isLive(room.cipher.open(sealed, { ...company, companyId: other }, 'refresh_token').reveal())).toBe(true);
  });
});

describe('refused', () => {
  test('invalid_grant: no further request is made, by anybody', async () => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'invalid_grant' } });
    const source = room.manager.sourceFor(company);
    await expect(source.get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    expect(await status(company)).toEqual(['reauthorization_required', 'token_refused']);
    const sent = server.received.length;
    await expect(source.get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    await expect(room.manager.refresh(company)).rejects.toMatchObject({ code: 'reauthorization_required' });
    expect(await room.manager.due(10)).toEqual([]);
    expect(server.received).toHaveLength(sent);
  });

  test('invalid_grant after another process has renewed: its stored token is the answer', async () => {
    const { company, token } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    let theirs = '';
    server.misdeeds.push({
      kind: 'before',
      work: async () => {
        server.revoke(token);
        theirs = await authorizeElsewhere(room, server, company);
      },
    });
    expect((await room.manager.sourceFor(company).get()).reveal()).toBe(theirs);
    expect(await status(company)).toEqual(['active', null]);
  });

  test('an access token that API calls refuse: the company must authorize again, and is asked nothing more', async () => {
    const { company } = await onboarded(room, server);
    const source = room.manager.sourceFor(company);
    await expect(source.refused(await source.get())).rejects.toMatchObject({ code: 'token_busy', retryable: true });
    expect(await status(company)).toEqual(['active', null]);
    await alter(database.db, company, "refused_at = now() - interval '30 seconds', refreshed_at = now() - interval '29 seconds'");
    await source.refused(await source.get());
    expect(await status(company)).toEqual(['reauthorization_required', 'access_token_refused']);
    await expect(source.get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    expect(server.received).toHaveLength(1);
  });

  test('a refusal that comes after a new authorization does not undo it', async () => {
    const { company } = await onboarded(room, server);
    const source = room.manager.sourceFor(company);
    const outdated = await source.get();
    await authorizeElsewhere(room, server, company);
    await expect(source.refused(outdated)).rejects.toMatchObject({ code: 'token_busy', retryable: true });
    expect(await status(company)).toEqual(['active', null]);
  });

  test('a late answer never overwrites a newer authorization, and is not thrown away', async () => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    let theirs = '';
    server.misdeeds.push({
      kind: 'after',
      work: async () => {
        theirs = await authorizeElsewhere(room, server, company);
      },
    });
    expect((await room.manager.sourceFor(company).get()).reveal()).toBe(theirs);
    expect((await room.manager.sourceFor(company).get()).reveal()).toBe(theirs);
    const { rows } = await database.db.pool.query<{ refresh_token: string }>(
      'SELECT * FROM muster.quarantined_tokens WHERE company_id = $1',
      [company.companyId],
    );
    expect(rows).toHaveLength(1);
    const late = room.cipher.open(rows[0]?.refresh_token ?? '', company, 'refresh_token').reveal();
    expect(server.isLive(late)).toBe(true);
    expect(await storedRefreshToken(room, company)).not.toBe(late);
  });

  test('an answer that comes after the company was removed is dropped', async () => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'after', work: () => room.connections.remove(company, TESTER) });
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'company_not_found' });
    const { rows } = await database.db.pool.query('SELECT FROM muster.quarantined_tokens WHERE company_id = $1', [
      company.companyId,
    ]);
    expect(rows).toEqual([]);
  });

  test.each([
    ['401 invalid_client', 401, { error: 'invalid_client' }],
    ['400 invalid_request', 400, { error: 'invalid_request' }],
    ['400 invalid_client in another format', 400, { code: 'invalid_client' }],
    ['400 in plain text', 400, 'The token is not known.'],
    ['403 from a proxy', 403, '<html>'],
    ['400 from a proxy', 400, '<html>'],
    ['404', 404, ''],
    ['a redirect', 302, ''],
  ])('%s is our fault, not the company’s', async (_what, code, body) => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'answer', status: code, body, headers: code === 302 ? { location: '/elsewhere' } : {} });
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_refused' });
    expect(await status(company)).toEqual(['active', null]);
  });
});

describe('trouble', () => {
  test('5xx, 429 and no connection never count against the company, and are not hammered', async () => {
    const { company, token } = await onboarded(room, server);
    const source = room.manager.sourceFor(company);
    for (const [code, expected] of [
      [500, 'service_error'],
      [503, 'service_error'],
      [429, 'service_throttled'],
      [502, 'service_error'],
    ] as const) {
      await alter(database.db, company, EXPIRED);
      server.misdeeds.push({ kind: 'answer', status: code });
      await expect(source.get()).rejects.toMatchObject({ code: expected, retryable: true });
    }
    const sent = server.received.length;
    for (let i = 0; i < 20; i++) await expect(source.get()).rejects.toMatchObject({ code: 'service_error', retryable: true });
    expect(server.received).toHaveLength(sent);
    const { rows } = await database.db.pool.query('SELECT transient_failures, refresh_at > now() AS later FROM muster.tokens');
    expect(rows).toEqual([{ transient_failures: 4, later: true }]);

    await alter(database.db, company, EXPIRED);
    await source.get();
    expect(server.uses(token)).toBe(5);
    const after = await database.db.pool.query('SELECT transient_failures FROM muster.tokens');
    expect(after.rows).toEqual([{ transient_failures: 0 }]);
  });

  test.each([
    ['service_refused', 403, '<html>'],
    ['service_refused', 400, 'in plain text'],
    ['service_throttled', 429, ''],
  ])('until the next attempt, each caller gets %s of the last one (%i %j), and may try again', async (code, answered, body) => {
    const { company, token } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'answer', status: answered, body });
    await expect(patient(room).manager.sourceFor(company).get()).rejects.toMatchObject({ code });
    for (const { manager } of [room, oauthRoom(database.db, server)])
      await expect(manager.sourceFor(company).get()).rejects.toMatchObject({
        code,
        retryable: true,
        message: expect.stringContaining('the next attempt is made at'),
      });
    expect(server.uses(token)).toBe(1);

    await alter(database.db, company, EXPIRED);
    await room.manager.sourceFor(company).get();
    const { rows } = await database.db.pool.query('SELECT last_failure FROM muster.tokens');
    expect(rows).toEqual([{ last_failure: null }]);
  });

  test('Retry-After puts the next attempt off', async () => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'answer', status: 429, headers: { 'retry-after': '120' } });
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_throttled' });
    const { rows } = await database.db.pool.query(
      "SELECT refresh_at > now() + interval '110 seconds' AS later FROM muster.tokens",
    );
    expect(rows).toEqual([{ later: true }]);
  });

  test('an authorization server that is not there is not counted, however often', async () => {
    const { company, token } = await onboarded(room, server);
    const gone = await TokenServer.start();
    const lonely = oauthRoom(database.db, gone);
    await gone.stop();
    for (let i = 0; i < 4; i++) {
      await alter(database.db, company, EXPIRED);
      await expect(lonely.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_unreachable' });
    }
    expect(await status(company)).toEqual(['active', null]);
    await alter(database.db, company, EXPIRED);
    await room.manager.sourceFor(company).get();
    expect(server.uses(token)).toBe(1);
  });

  test('a lost answer: the token is sent once more, and works if it was not used up', async () => {
    const { company, token } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'drop', rotate: false });
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_unreachable', retryable: true });
    await alter(database.db, company, EXPIRED);
    await room.manager.sourceFor(company).get();
    expect(server.uses(token)).toBe(2);
    expect(await status(company)).toEqual(['active', null]);
    const { rows } = await database.db.pool.query('SELECT ambiguous_attempts FROM muster.tokens');
    expect(rows).toEqual([{ ambiguous_attempts: 0 }]);
  });

  test('a lost answer that used the token up: authorize again, with that reason', async () => {
    const { company, token } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'drop', rotate: true });
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_unreachable' });
    await alter(database.db, company, EXPIRED);
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    expect(await status(company)).toEqual(['reauthorization_required', 'refresh_outcome_unknown']);
    expect(server.uses(token)).toBe(2);
  });

  test('a server that is silent to all costs no company its authorization', async () => {
    const companies = await Promise.all(Array.from({ length: 3 }, () => onboarded(room, server)));
    for (let round = 0; round < 4; round++) {
      await database.db.pool.query(`UPDATE muster.tokens SET ${EXPIRED}`);
      for (const { company } of companies) {
        server.misdeeds.push({ kind: 'drop', rotate: false });
        await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_unreachable' });
      }
    }
    await database.db.pool.query(`UPDATE muster.tokens SET ${EXPIRED}`);
    for (const { company } of companies) {
      await room.manager.sourceFor(company).get();
      expect(await status(company)).toEqual(['active', null]);
    }
  });

  test('a paused company is kept alive, an unconfigured environment left alone', async () => {
    const { company } = await onboarded(room, server);
    await room.connections.pause(company);
    await alter(database.db, company, DUE);
    expect(await room.manager.due(10)).toEqual([company]);
    await room.manager.refresh(company);
    expect(server.received).toHaveLength(2);
    await database.db.pool.query(`UPDATE muster.connections SET environment = 'production'`); // and its token with it
    await alter(database.db, { ...company, environment: 'production' }, DUE);
    expect(await room.manager.due(10)).toEqual([]);
    await expect(room.manager.refresh({ ...company, environment: 'production' })).rejects.toMatchObject({
      code: 'environment_not_configured',
    });
    expect(server.received).toHaveLength(2);
    await expect(room.manager.sourceFor(newCompany()).get()).rejects.toMatchObject({ code: 'company_not_found' });
  });
});

test.each([
  ['a line break', 'access\r\nX-Evil: 1'],
  ['5 MB', 'a'.repeat(5_000_000)],
])('an access token with %s: not kept, and the refresh token that came with it is', async (_what, accessToken) => {
  const { company, token } = await onboarded(room, server);
  await alter(database.db, company, EXPIRED);
  server.misdeeds.push({ kind: 'change', change: (grant) => ({ ...grant, access_token: accessToken }) });
  await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_error' });
  const kept = await storedRefreshToken(room, company);
  expect(kept).not.toBe(token);
  expect(server.isLive(kept)).toBe(true);
  await alter(database.db, company, 'refresh_at = now()');
  expect((await room.manager.sourceFor(company).get()).reveal()).toMatch(/^access-token/);
  expect([server.uses(token), server.uses(kept)]).toEqual([1, 1]);
});
