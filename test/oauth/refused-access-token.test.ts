import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ApiClient } from '../../src/http/api-client.js';
import { HttpClient } from '../../src/http/http-client.js';
import { fakeService, type Received } from '../http/fake-service.js';
import { alter, authorizeElsewhere, type OauthRoom, oauthRoom, onboarded } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
let room: OauthRoom;
let service: Awaited<ReturnType<typeof fakeService>>;
/** The status of each request to the API. */
let statusOf: (request: Received & { readonly token: string; readonly isRecord: boolean }) => number;

beforeAll(async () => {
  service = await fakeService((request, response: ServerResponse) => {
    const token = request.headers.authorization!.replace('Bearer ', '');
    const isRecord = /^\/api\/companies\/[^/]+$/.test(request.url);
    response.writeHead(statusOf({ ...request, token, isRecord }), { 'content-type': 'application/json' }).end('{}');
  });
});
beforeEach(() => {
  service.received.length = 0;
  room = oauthRoom(database.db, server);
});
afterAll(async () => {
  await service.close();
});

/** Reads a list of the company. `sleep` is what a wait for another attempt comes to. */
async function read(company: CompanyKey, list = '/employees', sleep: Clock['sleep'] = async () => {}, { manager } = room) {
  const clock = { ...systemClock, sleep };
  const provider = { baseUrl: service.url };
  const api = new ApiClient({ http: new HttpClient(), provider, clock, logger: pino({ enabled: false }) });
  const tokens = manager.sourceFor(company);
  const path = `/api/companies/${company.companyId}${list}`;
  return api.request({ method: 'GET', path, tokens, mayBeWitness: list !== '' });
}

/** The pair was stored long ago. */
const OLD = "refreshed_at = now() - interval '5 minutes'";
/** The first time that the token was refused everywhere is long enough ago. */
const AGO = "refused_at = refused_at - interval '31 seconds'";

const reason = async (company: CompanyKey) => (await room.connections.find(company))?.reauthorizationReason;

test('401 from one list alone: that list fails, with one refresh a token, and the others go on', async () => {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, OLD);
  statusOf = ({ url }) => (url.endsWith('/salaries') ? 401 : 200);
  for (let night = 1; night <= 3; night++) {
    expect((await read(company)).status).toBe(200);
    await expect(read(company, '/salaries')).rejects.toMatchObject({ code: 'service_refused', details: { status: 401 } });
    expect((await read(company, '/departments')).status).toBe(200);
    expect(server.received).toHaveLength(2);
    await alter(database.db, company, OLD);
  }
  await room.manager.sourceFor(company).renew(await room.manager.sourceFor(company).get());
  await alter(database.db, company, OLD);
  await expect(read(company, '/salaries')).rejects.toMatchObject({ code: 'service_refused' });
  expect(server.received).toHaveLength(4);
  expect(await reason(company)).toBeNull();
});

test('401 from the company’s own record alone ends nothing', async () => {
  const { company } = await onboarded(room, server);
  statusOf = ({ isRecord }) => (isRecord ? 401 : 200);
  expect((await read(company)).status).toBe(200);
  await expect(read(company, '')).rejects.toMatchObject({ code: 'service_refused' });
  expect(await reason(company)).toBeNull();
});

test('401 from lists and record, now and half a minute later, with tokens that were just renewed: the company must authorize again', async () => {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, OLD);
  statusOf = () => 401;
  for (const list of ['/employees', '/departments', '/employees'])
    await expect(read(company, list)).rejects.toMatchObject({ code: 'token_busy', retryable: true });
  expect([await reason(company), server.received.length]).toEqual([null, 5]);
  await alter(database.db, company, `${AGO}, refreshed_at = refused_at - interval '31 seconds'`);
  await expect(read(company)).rejects.toMatchObject({ code: 'access_token_refused' });
  expect(await reason(company)).toBe('access_token_refused');
  const sent = server.received.length;
  expect(sent).toBe(6);
  await expect(read(company)).rejects.toMatchObject({ code: 'reauthorization_required' });
  expect(server.received).toHaveLength(sent);
});

test('an API that refuses everything for a moment costs no authorization, whichever process sees it recover', async () => {
  const { company } = await onboarded(room, server);
  const elsewhere = oauthRoom(database.db, server);
  for (const other of [room, elsewhere, elsewhere]) {
    statusOf = () => 401;
    await expect(read(company)).rejects.toMatchObject({ code: 'token_busy' });
    await alter(database.db, company, AGO);
    statusOf = () => 200;
    expect((await read(company, '/departments', undefined, other)).status).toBe(200);
  }
  statusOf = () => 401;
  await expect(read(company)).rejects.toMatchObject({ code: 'token_busy' });
  expect(await reason(company)).toBeNull();
  // A new authorization begins with a clean record.
  await alter(database.db, company, AGO);
  await authorizeElsewhere(room, server, company);
  await expect(read(company)).rejects.toMatchObject({ code: 'token_busy' });
  expect(await reason(company)).toBeNull();
});

describe('a role that may not read the company’s own record', () => {
  const shown = ({ isRecord, url }: { isRecord: boolean; url: string }) => (isRecord || url.endsWith('/salaries') ? 401 : 200);

  test('the list that was read last says that the 401 of another one is its own', async () => {
    const { company } = await onboarded(room, server);
    statusOf = shown;
    expect((await read(company)).status).toBe(200);
    await alter(database.db, company, OLD);
    for (let time = 0; time < 3; time++)
      await expect(read(company, '/salaries')).rejects.toMatchObject({ code: 'service_refused', details: { status: 401 } });
    expect([await reason(company), server.received.length]).toEqual([null, 2]);
    // A process that has read nothing of this company knows that list, too.
    const elsewhere = oauthRoom(database.db, server);
    for (let time = 0; time < 2; time++)
      await expect(read(company, '/salaries', undefined, elsewhere)).rejects.toMatchObject({ code: 'service_refused' });
    expect(await reason(company)).toBeNull();
    // Once it is refused like all else, the company is noticed.
    statusOf = () => 401;
    await expect(read(company)).rejects.toMatchObject({ code: 'token_busy' });
    await alter(database.db, company, AGO);
    await expect(read(company, '/salaries', undefined, elsewhere)).rejects.toMatchObject({ code: 'access_token_refused' });
  });

  test('the refused list comes first: no other one, read later, leaves the authorization at its second refusal', async () => {
    const { company } = await onboarded(room, server);
    statusOf = shown;
    await expect(read(company, '/salaries')).rejects.toMatchObject({ code: 'token_busy' });
    expect((await read(company)).status).toBe(200);
    await alter(database.db, company, OLD);
    for (const by of [room, oauthRoom(database.db, server)])
      await expect(read(company, '/salaries', undefined, by)).rejects.toMatchObject({ code: 'service_refused' });
    expect(await reason(company)).toBeNull();
  });

  test('an address that is not of the API any more gets no token', async () => {
    const { company } = await onboarded(room, server);
    const stranger = await fakeService((_, response) => response.end('{}'));
    await alter(database.db, company, `witness = '${stranger.url.href}employees'`);
    statusOf = () => 401;
    await expect(read(company)).rejects.toMatchObject({ code: 'token_busy' });
    expect(stranger.received).toEqual([]);
    await stranger.close();
  });
});

test('revoked: the first 401 leads to invalid_grant', async () => {
  const { company, token } = await onboarded(room, server);
  await alter(database.db, company, OLD);
  statusOf = () => 401;
  server.revoke(token);
  await expect(read(company)).rejects.toMatchObject({ code: 'reauthorization_required' });
  expect([await reason(company), service.received.length]).toEqual(['token_refused', 1]);
});

test('a 401 long after the renewal, when the token has expired since: it is renewed once more, and the list is read', async () => {
  const { company } = await onboarded(room, server);
  let valid = '';
  const script = [401, 503];
  statusOf = ({ token }) => script.shift() ?? (token === valid ? 200 : 401);
  const response = await read(company, '/employees', async () => {
    // The wait before the next attempt outlasts the token: it is known to be expired, or an earlier end of it is not.
    valid = '';
    await alter(database.db, company, OLD);
    server.misdeeds.push({ kind: 'change', change: (grant) => ((valid = String(grant['access_token'])), grant) });
  });
  expect(response.status).toBe(200);
  expect(await reason(company)).toBeNull();
});

test('a token that was renewed more than a minute ago proves nothing', async () => {
  const { company } = await onboarded(room, server);
  const source = room.manager.sourceFor(company);
  const token = await source.get();
  for (const age of [
    "refreshed_at = now() - interval '61 seconds'",
    "refreshed_at = now(), expires_at = now() - interval '1 second'",
    "expires_at = now() + interval '30 minutes', lease_until = now() + interval '20 seconds'",
  ]) {
    await alter(database.db, company, age);
    await expect(source.refused(token)).rejects.toMatchObject({ code: 'token_busy', retryable: true });
    expect(await reason(company)).toBeNull();
  }
  await alter(database.db, company, 'lease_until = NULL');
  await expect(source.refused(token)).rejects.toMatchObject({
    code: 'token_busy',
    message: expect.stringMatching(/answers 401/),
  });
  // A clock that goes back delays the second time by no more than it takes anyway.
  await alter(database.db, company, "refused_at = now() + interval '1 hour'");
  await expect(source.refused(token)).rejects.toMatchObject({ code: 'token_busy' });
  await alter(database.db, company, `${AGO}, refreshed_at = now() - interval '40 seconds'`);
  // It was renewed before the first time: another one might be taken.
  await expect(source.refused(token)).rejects.toMatchObject({ code: 'token_busy', message: expect.stringMatching(/elsewhere/) });
  await alter(database.db, company, 'refreshed_at = now()');
  await source.refused(token);
  expect(await reason(company)).toBe('access_token_refused');
});

test('while another worker refreshes, a 401 waits for its token', async () => {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, OLD);
  const elsewhere = oauthRoom(database.db, server);
  const stale = await room.manager.sourceFor(company).get();
  // The service has ended the old token already, and gives the new one out.
  statusOf = ({ token }) => (token === stale.reveal() ? 401 : 200);
  let reading: Promise<{ status: number }> | undefined;
  server.misdeeds.push({ kind: 'after', work: async () => void (await Promise.race([(reading = read(company)), seen401()])) });
  await elsewhere.manager.sourceFor(company).renew(stale);
  expect((await reading)?.status).toBe(200);
  expect(server.received).toHaveLength(2);
  expect(await reason(company)).toBeNull();
});

/** Resolves when the API has refused a request. */
async function seen401(): Promise<void> {
  while (service.received.length === 0) await systemClock.sleep(5);
}

test('the service grants the same access token again: each 401 leads to one refresh at most, then the list is judged', async () => {
  const { company } = await onboarded(room, server);
  const source = room.manager.sourceFor(company);
  const stale = await source.get();
  const same = { access_token: stale.reveal() };
  for (let i = 0; i < 20; i++) server.misdeeds.push({ kind: 'change', change: (grant) => ({ ...grant, ...same }) });
  const renewed = await Promise.all(Array.from({ length: 10 }, () => source.renew(stale)));
  expect(new Set(renewed.map((token) => token.reveal()))).toEqual(new Set([stale.reveal()]));
  // One each at most: those that asked while a refresh was under way have shared it.
  expect(server.received.length).toBeLessThan(12);

  server.received.length = 0;
  statusOf = ({ isRecord }) => (isRecord ? 200 : 401);
  await expect(read(company)).rejects.toMatchObject({ code: 'service_refused' });
  expect(server.received).toHaveLength(1);
  expect(await reason(company)).toBeNull();
  statusOf = () => 401;
  for (const refreshes of [2, 3]) {
    await expect(read(company)).rejects.toMatchObject({ code: 'token_busy' });
    expect(server.received).toHaveLength(refreshes);
  }
  await alter(database.db, company, `${AGO}, ${OLD}`);
  await expect(read(company)).rejects.toMatchObject({ code: 'access_token_refused' });
  expect(server.received).toHaveLength(4);
  expect(await reason(company)).toBe('access_token_refused');
});

test('a refresh that was put off: a refused token ends nothing, and the call may be repeated', async () => {
  const { company } = await onboarded(room, server);
  statusOf = () => 401;
  server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'access_denied' } });
  for (const message of [/answered 400 access_denied/, /answered 400 access_denied.*next attempt/])
    await expect(read(company)).rejects.toMatchObject({
      code: 'service_refused',
      retryable: true,
      message: expect.stringMatching(message) as string,
    });
  expect([await reason(company), server.received.length]).toEqual([null, 2]);
});
