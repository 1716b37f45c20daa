import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import type { Secret } from '../../src/core/secret.js';
import { waitFor } from '../support/wait-for.js';
import { alter, DUE, EXPIRED, type OauthRoom, oauthRoom, onboarded } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
let room: OauthRoom;

beforeEach(() => {
  room = oauthRoom(database.db, server);
});

const reason = async (company: CompanyKey) => (await room.connections.find(company))?.reauthorizationReason;

/** The company's token comes due, is sent, and no answer comes. */
async function goesUnanswered(company: CompanyKey, rotate = false): Promise<string> {
  await alter(database.db, company, EXPIRED);
  server.misdeeds.push({ kind: 'drop', rotate });
  return room.manager
    .sourceFor(company)
    .get()
    .then(
      () => 'answered',
      (error: { code: string }) => error.code,
    );
}

async function companies(count: number): Promise<CompanyKey[]> {
  return Promise.all(Array.from({ length: count }, async () => (await onboarded(room, server)).company));
}

test('lost answers alone end no authorization, however many, and whatever becomes of the others', async () => {
  const [lost, healthy] = (await companies(2)) as [CompanyKey, CompanyKey];
  for (let round = 0; round < 5; round++) {
    expect(await goesUnanswered(lost)).toBe('service_unreachable');
    await alter(database.db, healthy, DUE);
    await room.manager.refresh(healthy);
  }
  expect(await reason(lost)).toBeNull();
  await alter(database.db, lost, EXPIRED);
  await room.manager.sourceFor(lost).get();
  expect(await reason(lost)).toBeNull();
});

test('a refusal after lost answers ends it, for the reason that an answer was lost', async () => {
  const [company] = (await companies(1)) as [CompanyKey];
  expect(await goesUnanswered(company, true)).toBe('service_unreachable');
  await alter(database.db, company, EXPIRED);
  server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'access_denied' } });
  await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'service_refused' });
  expect(await reason(company)).toBeNull();
  await alter(database.db, company, EXPIRED);
  await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
  expect(await reason(company)).toBe('refresh_outcome_unknown');
});

test('an answer, a refusal above all, is never asked for again, outage or not', async () => {
  const [first, second] = (await companies(2)) as [CompanyKey, CompanyKey];
  expect(await goesUnanswered(first, true)).toBe('service_unreachable');
  expect(await goesUnanswered(second)).toBe('service_unreachable');
  expect(await goesUnanswered(second)).toBe('service_unreachable');
  await alter(database.db, first, EXPIRED);
  await expect(room.manager.sourceFor(first).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
  const sent = server.received.length;
  await expect(room.manager.sourceFor(first).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
  expect(server.received).toHaveLength(sent);
});

test('an answer that was given up for lost and comes after all brings the company back', async () => {
  const [company] = (await companies(1)) as [CompanyKey];
  await alter(database.db, company, EXPIRED);
  server.misdeeds.push({
    kind: 'after',
    work: async () => {
      // The holder is frozen for longer than its lease: another process sends the same token, and it is refused.
      await alter(database.db, company, "lease_until = now() - interval '1 second'");
      const rival = oauthRoom(database.db, server);
      await expect(rival.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
      expect(await reason(company)).toBe('refresh_outcome_unknown');
    },
  });
  const late = await room.manager.sourceFor(company).get();
  expect(await room.connections.find(company)).toMatchObject({ status: 'active' });
  expect((await room.manager.sourceFor(company).get()).reveal()).toBe(late.reveal());
});

test('a request that got a 401 waits for a renewal that another process runs', async () => {
  const [company] = (await companies(1)) as [CompanyKey];
  const elsewhere = oauthRoom(database.db, server);
  const stale = await room.manager.sourceFor(company).get();
  let pauses = 0;
  const waiter = oauthRoom(database.db, server, { ...systemClock, sleep: (ms) => ((pauses += 1), systemClock.sleep(ms)) });
  let waiting: Promise<Secret> | undefined;
  server.misdeeds.push({
    kind: 'before',
    work: async () => {
      waiting = waiter.manager.sourceFor(company).renew(stale);
      await waitFor(() => pauses >= 2);
    },
  });
  const sent = server.received.length;
  const renewed = await elsewhere.manager.sourceFor(company).renew(stale);
  expect((await waiting)?.reveal()).toBe(renewed.reveal());
  expect(server.received).toHaveLength(sent + 1);
});

test('a token that cannot be read is looked at only now and then, and the error says which key it needs', async () => {
  const [company] = (await companies(1)) as [CompanyKey];
  await alter(database.db, company, `${EXPIRED}, refresh_token = replace(refresh_token, 'v1.k1.', 'v1.gone.')`);
  for (let i = 0; i < 2; i++) {
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({
      code: 'token_unreadable',
      message: expect.stringContaining('"gone"') as string,
    });
    expect(await room.manager.due(10)).toEqual([]);
  }
});
