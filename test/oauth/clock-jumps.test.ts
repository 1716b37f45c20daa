import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { alter, EXPIRED, type OauthRoom, oauthRoom, onboarded, patient } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
let room: OauthRoom;

beforeEach(() => {
  room = oauthRoom(database.db, server);
});

/** The database's clock jumps: every time that was written is so much further in the past. */
async function jump(interval: string): Promise<void> {
  const columns = ['expires_at', 'refreshed_at', 'refresh_at', 'lease_until', 'attempt_started_at'];
  await database.db.pool.query(
    `UPDATE muster.tokens SET ${columns.map((name) => `${name} = ${name} - interval '${interval}'`).join(', ')}`,
  );
}

async function databaseTime(): Promise<string> {
  const { rows } = await database.db.pool.query<{ time: string }>('SELECT clock_timestamp()::text AS time');
  return rows[0]!.time;
}

test('a day ahead: every company is refreshed once, however many ask, and then no more', async () => {
  const companies = await Promise.all(Array.from({ length: 12 }, async () => (await onboarded(room, server)).company));
  await jump('1 day');
  server.received.length = 0;
  const other = openDatabase({ url: database.url, poolSize: 4 });
  const managers = [room.manager, oauthRoom(other, server).manager];
  try {
    for (let sweep = 0; sweep < 3; sweep++) {
      await Promise.all(managers.flatMap((manager) => companies.map((company) => manager.refresh(company))));
      await Promise.all(managers.flatMap((manager) => companies.map((company) => manager.sourceFor(company).get())));
    }
  } finally {
    await other.close();
  }
  expect(server.received).toHaveLength(companies.length);
  expect(await room.manager.due(100)).toEqual([]);
});

test('a day back: nothing is refreshed, and the token that has expired in truth is renewed at the first 401', async () => {
  const { company } = await onboarded(room, server);
  await jump('-1 day');
  server.received.length = 0;
  expect(await room.manager.due(100)).toEqual([]);
  const source = room.manager.sourceFor(company);
  const stale = await source.get();
  expect(server.received).toHaveLength(0);
  await source.renew(stale);
  expect(server.received).toHaveLength(1);
  const expiresAt = (await room.connections.find(company))?.expiresAt?.getTime() ?? 0;
  expect(expiresAt - Date.now()).toBeLessThan(31 * 60_000);
});

test('a day back while an attempt was put off: it is made at once', async () => {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, EXPIRED);
  server.misdeeds.push({ kind: 'answer', status: 503 });
  const source = patient(room).manager.sourceFor(company);
  await expect(source.get()).rejects.toMatchObject({ code: 'service_error' });
  await expect(source.get()).rejects.toMatchObject({ code: 'service_error' });
  await jump('-1 day');
  await alter(database.db, company, "expires_at = now() - interval '1 second'");
  await source.get();
});

test('a day back while a holder was dead: its lease lasts no longer than any other', async () => {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, `${EXPIRED}, lease_owner = 'dead', lease_until = now() + interval '1 day'`);
  let waited = 0;
  const waiter = oauthRoom(database.db, server, {
    now: () => Date.now(),
    monotonic: () => performance.now() + waited,
    sleep: async (ms) => void (waited += ms * 100),
  });
  const before = await databaseTime();
  await expect(waiter.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'token_busy', retryable: true });
  const { rows } = await database.db.pool.query(
    `SELECT lease_until >= $1::timestamptz + interval '30 s' AND lease_until <= now() + interval '30 s' AS soon FROM muster.tokens`,
    [before],
  );
  expect(rows).toEqual([{ soon: true }]);
});

test('the times of a pair count from when it was asked for, not from when the database took it', async () => {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, EXPIRED);
  server.lifetime = 100;
  let ahead = 0;
  const slow = oauthRoom(database.db, server, { ...systemClock, monotonic: () => ahead });
  server.misdeeds.push({ kind: 'after', work: async () => void (ahead = 40_000) });
  await slow.manager.sourceFor(company).get();
  server.lifetime = 1799;
  const { rows } = await database.db.pool.query<{ left: number; due: number }>(
    `SELECT extract(epoch FROM expires_at - refreshed_at)::float8 AS left, extract(epoch FROM refresh_at - refreshed_at)::float8 AS due
     FROM muster.tokens`,
  );
  expect(rows[0]?.left).toBe(60);
  expect(rows[0]?.due).toBeLessThanOrEqual(10);
});

test('lifetimes that change at every refresh', async () => {
  const { company } = await onboarded(room, server);
  // No time passes between the request and the row that it ends in.
  const quick = oauthRoom(database.db, server, { ...systemClock, monotonic: () => 0 });
  for (const [lifetime, earliest, latest] of [
    [1_799, 1_403, 1_440],
    [3_600, 2_808, 2_880],
    [5, 2, 2.5],
    [90, 24, 45],
    [1, 0, 0.5],
  ] as const) {
    server.lifetime = lifetime;
    await alter(database.db, company, EXPIRED);
    await quick.manager.sourceFor(company).get();
    const { rows } = await database.db.pool.query<{ due: number }>(
      'SELECT extract(epoch FROM refresh_at - refreshed_at)::float8 AS due FROM muster.tokens',
    );
    expect(rows[0]?.due).toBeGreaterThanOrEqual(earliest);
    expect(rows[0]?.due).toBeLessThanOrEqual(latest);
  }
  server.lifetime = 1799;
});
