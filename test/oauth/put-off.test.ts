import { pino } from 'pino';
import { beforeEach, describe, expect, test } from 'vitest';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { hastenRefreshes } from '../../src/db/tables/put-off-tokens.js';
import { AccessTokenManager } from '../../src/oauth/access-token-manager.js';
import { Runs } from '../../src/runs/runs.js';
import { notQuiet } from '../support/quiet.js';
import { alter, DUE, EXPIRED, type OauthRoom, oauthRoom, onboarded, storedRefreshToken, trustTokens } from './fixture.js';
import { oauthSuite } from './suite.js';
import type { Misdeed } from './token-server.js';

const { database, server } = await oauthSuite();
let room: OauthRoom;

beforeEach(async () => {
  await trustTokens(database.db);
  const plain = oauthRoom(database.db, server);
  // No attempt is made sooner than planned.
  const deps = { ...plain.deps, random: () => 1 };
  room = { ...plain, deps, manager: new AccessTokenManager(deps) };
});

const reason = async (company: CompanyKey) => (await room.connections.find(company))?.reauthorizationReason;

interface Row {
  readonly wait: number;
  readonly last_failure: string | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly put_offs: number;
  readonly ambiguous_attempts: number;
}

/** The company's token row; `wait` are the seconds until its next attempt. */
async function row({ companyId }: CompanyKey): Promise<Row> {
  const { rows } = await database.db.pool.query<Row>(
    `SELECT *, round(extract(epoch FROM refresh_at - now()))::int AS wait FROM muster.tokens WHERE company_id = $1`,
    [companyId],
  );
  return rows[0]!;
}

/** The time until an attempt, of which a slow machine has used up less than half. */
const atMost = (seconds: number) => expect.toSatisfy((wait: number) => wait <= seconds && wait > seconds / 2);

/** The token is due, expired or not, and its refresh is answered so. Returns the code of the error, or `granted`. */
async function refresh(company: CompanyKey, misdeed?: Misdeed, state = EXPIRED): Promise<string> {
  await alter(database.db, company, state);
  if (misdeed) server.misdeeds.push(misdeed);
  return room.manager
    .sourceFor(company)
    .get()
    .then(
      () => 'granted',
      (error: { code: string; retryable: boolean }) => (expect(error.retryable).toBe(true), error.code),
    );
}

const json = (status: number, body: object): Misdeed => ({ kind: 'answer', status, body });
const html = (status: number): Misdeed => ({ kind: 'answer', status, body: '<html>', headers: { 'content-type': 'text/html' } });

const ERRORS: readonly [string, Misdeed, number, string | null][] = [
  ['too early', json(400, { error: 'access_denied', error_description: 'access_token not expired' }), 400, 'access_denied'],
  ['retry', json(400, { error: 'unknown_error', error_description: 'retry your request' }), 400, 'unknown_error'],
  ['unavailable', json(400, { error: 'temporarily_unavailable' }), 400, 'temporarily_unavailable'],
  ['unavailable, with success', json(200, { error: 'temporarily_unavailable' }), 200, 'temporarily_unavailable'],
  ['a server error', json(400, { error: 'server_error' }), 400, 'server_error'],
  ['slow down', json(400, { error: 'slow_down' }), 400, 'slow_down'],
  ['another format', json(400, { Message: 'An error has occurred.' }), 400, null],
  ['another format with a code in it', json(400, { error: { code: 'invalid_grant' } }), 400, null],
  ['a request that it does not like', json(400, { error: 'invalid_request' }), 400, 'invalid_request'],
  ['a page with 400', html(400), 400, null],
  ['a page with 403', html(403), 403, null],
  ['a page with 404', html(404), 404, null],
];

describe('an error without an explanation', () => {
  test.each(ERRORS)(
    '%s: put off for longer and longer, and the token is as good as before',
    async (_what, misdeed, status, error) => {
      const { company, token } = await onboarded(room, server);
      for (const wait of [10, 60, 300, 1_800, 3_600, 3_600]) {
        expect(await refresh(company, misdeed)).toBe('service_refused');
        expect(await row(company)).toMatchObject({
          wait: atMost(wait),
          last_status: status,
          last_error: error,
          ambiguous_attempts: 0,
        });
      }
      expect(await refresh(company)).toBe('granted');
      expect([server.uses(token), await reason(company)]).toEqual([7, null]);
      expect(await row(company)).toMatchObject({ put_offs: 0, last_failure: null, last_status: null, last_error: null });
      expect(await refresh(company, misdeed)).toBe('service_refused');
      expect((await row(company)).wait).toEqual(atMost(10));
    },
  );

  test('an access token that lives is used, and no refresh is sent before its time', async () => {
    const { company, token } = await onboarded(room, server);
    for (let attempt = 0; attempt < 2; attempt++)
      expect(await refresh(company, json(400, { error: 'access_denied' }), DUE)).toBe('granted');
    const source = room.manager.sourceFor(company);
    for (let asked = 0; asked < 3; asked++) expect((await source.get()).reveal()).toMatch(/^access-token/);
    expect(await room.manager.due(10)).toEqual([]);
    expect(server.uses(token)).toBe(2);
  });

  test('put-offs that the release before left behind a grant count for nothing', async () => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, "put_offs = 5, transient_failures = 0, last_status = 400, last_error = 'access_denied'");
    expect(await refresh(company, json(503, {}))).toBe('service_error');
    expect(await row(company)).toMatchObject({ put_offs: 0, last_status: 503, last_error: null });
    expect(await refresh(company, json(400, {}))).toBe('service_refused');
    expect((await row(company)).wait).toEqual(atMost(10));
  });

  test('408, 429 and 5xx between them keep their own times', async () => {
    const { company } = await onboarded(room, server);
    expect(await refresh(company, json(400, { error: 'access_denied' }))).toBe('service_refused');
    expect(await refresh(company, json(503, { error: 'temporarily_unavailable' }))).toBe('service_error');
    expect(await row(company)).toMatchObject({ wait: 4, last_status: 503, last_error: 'temporarily_unavailable' });
    expect(await refresh(company, json(400, { error: 'access_denied' }))).toBe('service_refused');
    expect((await row(company)).wait).toBe(60);
  });

  test.each(['invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_scope'])(
    '%s is of our settings: asked again within minutes',
    async (error) => {
      const { company } = await onboarded(room, server);
      for (const wait of [2, 4, 8]) {
        expect(await refresh(company, json(400, { error }))).toBe('service_refused');
        expect(await row(company)).toMatchObject({ wait, last_error: error });
      }
      expect(await reason(company)).toBeNull();
    },
  );

  test.each<[string, Misdeed]>([
    ['nothing', { kind: 'answer', status: 401, body: '' }],
    ['a message', json(401, { message: 'Unauthorized' })],
    ['a page', html(401)],
  ])('401 with %s is of our client secret: asked again within minutes', async (_what, misdeed) => {
    const { company } = await onboarded(room, server);
    for (const wait of [2, 4, 8]) {
      expect(await refresh(company, misdeed)).toBe('service_refused');
      expect(await row(company)).toMatchObject({ wait, last_status: 401, put_offs: 0 });
    }
    expect(await refresh(company, json(401, { error: 'access_denied' }))).toBe('service_refused');
    expect(await row(company)).toMatchObject({ wait: 10, put_offs: 1 });
    expect(await reason(company)).toBeNull();
  });

  test.each([200, 400, 401, 403, 429, 500, 503])('%i with invalid_grant ends the authorization at once', async (status) => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push(json(status, { error: 'invalid_grant' }));
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    expect(await reason(company)).toBe('token_refused');
    expect(await row(company)).toMatchObject({ last_status: status, last_error: 'invalid_grant' });
  });
});

describe('success with an error in it, or with a refresh token that is none', () => {
  const told = { error: 'temporarily_unavailable' };
  const quarantined = async () =>
    (await database.db.pool.query('SELECT reason FROM muster.quarantined_tokens')).rows as { reason: string }[];

  test.each<[string, object, number]>([
    ['an error and a placeholder', { ...told, refresh_token: 'null' }, 0],
    ['an error and another placeholder', { ...told, refresh_token: 'undefined' }, 0],
    ['an error and a text of a template', { ...told, refresh_token: 'string' }, 1],
  ])('%s: the stored pair stays, and is put off', async (_what, body, kept) => {
    await database.db.pool.query('DELETE FROM muster.quarantined_tokens');
    const { company, token } = await onboarded(room, server);
    for (const wait of [10, 60]) {
      expect(await refresh(company, json(200, body), DUE)).toBe('granted');
      expect(await row(company)).toMatchObject({ wait, last_status: 200, last_error: 'temporarily_unavailable' });
    }
    expect(await storedRefreshToken(room, company)).toBe(token);
    // It may be a successor after all: a person can find it.
    expect(new Set((await quarantined()).map(({ reason: why }) => why)).size).toBe(kept);
    expect(await refresh(company)).toBe('granted');
    expect([server.uses(token), await reason(company)]).toEqual([3, null]);
  });

  test('invalid_grant ends the authorization, whatever stands beside it', async () => {
    const { company } = await onboarded(room, server);
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push(json(200, { error: 'invalid_grant', refresh_token: 'another' }));
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    expect(await reason(company)).toBe('token_refused');
  });

  test.each(['null', 'undefined', 'NULL'])('the refresh token %j: the one that was sent stays in force', async (text) => {
    const { company, token } = await onboarded(room, server);
    const unchanged = { kind: 'change', change: (grant: object) => ({ ...grant, refresh_token: text }) } as const;
    expect(await refresh(company, unchanged)).toBe('granted');
    expect(await storedRefreshToken(room, company)).toBe(token);
    expect(await refresh(company, json(200, { refresh_token: text }))).toBe('service_unreachable');
    expect(await storedRefreshToken(room, company)).toBe(token);
    expect(await refresh(company, json(200, { refresh_token: token }))).toBe('service_unreachable');
    expect(await row(company)).toMatchObject({ ambiguous_attempts: 1, wait: 300 });
  });
});

describe('a lost answer', () => {
  test.each<[string, Misdeed, number | null]>([
    ['a connection that is cut', { kind: 'drop', rotate: false }, null],
    ['200 with a page', html(200), 200],
    ['200 without a body', { kind: 'answer', status: 200, body: '' }, 200],
    ['204', { kind: 'answer', status: 204, body: '' }, 204],
    ['200 without an access token', json(200, { expires_in: 1_799 }), 200],
  ])('%s: asked again after one minute, five, thirty, then each hour', async (_what, misdeed, status) => {
    const { company, token } = await onboarded(room, server);
    for (const wait of [60, 300, 1_800, 3_600, 3_600]) {
      expect(await refresh(company, misdeed)).toBe('service_unreachable');
      expect(await row(company)).toMatchObject({ wait, last_status: status, ambiguous_attempts: 1 });
    }
    expect(await refresh(company)).toBe('granted');
    expect([server.uses(token), await reason(company)]).toEqual([6, null]);
  });
});

describe('comes sooner', () => {
  const putOff = (count: number) =>
    database.db.pool.query(
      `UPDATE muster.tokens SET put_offs = $1, transient_failures = $1, last_failure = 'service_refused', refresh_at = now() + interval '50 minutes', hastened_until = NULL, not_before = NULL`,
      [count],
    );
  const soon = async () =>
    (await database.db.pool.query("SELECT FROM muster.tokens WHERE refresh_at < now() + interval '6 seconds'")).rowCount;

  test('once another company is granted a token: ten at a time, each once in its time', async () => {
    const { company: healthy } = await onboarded(room, server);
    await Promise.all(Array.from({ length: 25 }, () => onboarded(room, server)));
    await putOff(5);
    expect(await refresh(healthy)).toBe('granted');
    expect(await soon()).toBe(10);
    await alter(database.db, healthy, 'put_offs = 0');
    for (const count of [20, 25, 25]) {
      expect(await refresh(healthy)).toBe('granted');
      expect(await soon()).toBe(count);
    }
    // Their attempts fail again: until the time they were put off to, no grant brings them back.
    await database.db.pool.query("UPDATE muster.tokens SET refresh_at = now() + interval '55 minutes'");
    expect(await refresh(healthy)).toBe('granted');
    expect(await soon()).toBe(0);
    await database.db.pool.query("UPDATE muster.tokens SET hastened_until = now() - interval '1 second'");
    expect(await refresh(healthy)).toBe('granted');
    expect(await soon()).toBe(10);
  });

  test('once another company is onboarded; those of another environment, or under way, stay', async () => {
    const others = await Promise.all(Array.from({ length: 3 }, () => onboarded(room, server)));
    await putOff(2);
    await alter(database.db, others[0]!.company, "lease_until = now() + interval '20 seconds'");
    await database.db.pool.query(`UPDATE muster.connections SET environment = 'production' WHERE company_id = $1`, [
      others[1]!.company.companyId,
    ]);
    await onboarded(room, server);
    expect(await soon()).toBe(1);
    expect((await row(others[2]!.company)).wait).toBeLessThan(6);
  });

  test.each([
    ['429 that asks for patience', { kind: 'answer', status: 429, body: '', headers: { 'retry-after': '900' } }],
    ['503 that asks for patience', { kind: 'answer', status: 503, body: '', headers: { 'retry-after': '900' } }],
    ['an error that asks for patience', { kind: 'answer', status: 400, body: {}, headers: { 'retry-after': '900' } }],
  ] as const)('but not before the time that the service asked for: %s', async (_what, answer) => {
    const { company: healthy } = await onboarded(room, server);
    const { company } = await onboarded(room, server);
    await refresh(company, { kind: 'drop', rotate: false });
    await refresh(company, answer);
    expect((await row(company)).wait).toBe(900);
    expect(await refresh(healthy)).toBe('granted');
    await inTransaction(database.db, (tx) => hastenRefreshes(tx, { companies: [company] }));
    expect((await row(company)).wait).toBeGreaterThan(890);
    await alter(database.db, company, "not_before = now() - interval '1 second'");
    await inTransaction(database.db, (tx) => hastenRefreshes(tx, { companies: [company] }));
    expect((await row(company)).wait).toBeLessThanOrEqual(0);
  });

  test('a person who asks again and again has the token of a lost answer sent once a minute', async () => {
    const { company } = await onboarded(room, server);
    const ask = () => inTransaction(database.db, (tx) => hastenRefreshes(tx, { companies: [company] }));
    await refresh(company, { kind: 'drop', rotate: false });
    await ask();
    expect((await row(company)).wait).toBeLessThanOrEqual(0);
    await refresh(company, { kind: 'drop', rotate: false });
    await ask();
    expect((await row(company)).wait).toBeGreaterThan(50);
    expect((await row(company)).wait).toBeLessThan(61);
    await alter(database.db, company, "not_before = now() - interval '1 second'");
    await ask();
    expect((await row(company)).wait).toBeLessThanOrEqual(0);
  });

  test('once a person asks for a sync, at once; of many within a minute', async () => {
    const companies = (await Promise.all(Array.from({ length: 20 }, () => onboarded(room, server)))).map(
      ({ company }) => company,
    );
    const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 0 };
    const dispatcher = { dispatch: async () => {} };
    const runs = new Runs({
      db: database.db,
      catalogue: loadCatalogue(undefined),
      quiet: notQuiet,
      schedule,
      clock: systemClock,
      dispatcher,
    });
    await putOff(5);
    await runs.request({ company: companies[0]!, trigger: 'nightly' });
    expect((await row(companies[0]!)).wait).toEqual(atMost(3_000));
    await runs.request({ company: companies[0]!, trigger: 'manual' });
    expect((await row(companies[0]!)).wait).toBeLessThanOrEqual(0);
    const sent = server.received.length;
    await room.manager.refresh(companies[0]!);
    expect(server.received).toHaveLength(sent + 1);
    await putOff(5);
    await runs.requestMany({});
    const waits = await Promise.all(companies.map(async (company) => (await row(company)).wait));
    expect(Math.max(...waits)).toBeLessThanOrEqual(60);
    expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(10);
  });
});

test('the log says what the service answered, and nothing else of its answer', async () => {
  const { company, token } = await onboarded(room, server);
  const lines: string[] = [];
  const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const manager = new AccessTokenManager({ ...room.deps, logger });
  const body = { error: 'access_denied', error_description: `the token ${token} of Mr. Canary is too young` };
  for (const answer of [body, { ...body, error: 'invalid_grant' }]) {
    await alter(database.db, company, EXPIRED);
    server.misdeeds.push(json(400, answer));
    await manager
      .sourceFor(company)
      .get()
      .catch(() => {});
  }
  const log = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(log).toMatchObject([
    { msg: 'token not refreshed', answered_status: 400, answered_error: 'access_denied', company_id: company.companyId },
    { msg: 'company must authorize again', answered_status: 400, answered_error: 'invalid_grant', reason: 'token_refused' },
  ]);
  expect(lines.join('')).toContain('The token endpoint answered 400 access_denied');
  expect(lines.join('')).not.toMatch(/Canary|refresh-token/);
});
