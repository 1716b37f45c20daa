import { describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import type { Database } from '../../src/db/connection/database.js';
import { findToken } from '../../src/db/tables/tokens.js';
import { AccessTokenManager } from '../../src/oauth/access-token-manager.js';
import { RefreshAttempt } from '../../src/oauth/refresh-attempt.js';
import { waitFor } from '../support/wait-for.js';
import { alter, EXPIRED, oauthRoom, onboarded } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();

class Crash extends TypeError {}

/**
 * The database of a process that dies at its n-th visit to it: right before the visit, or right after, when what was
 * written is there and its answer lost. From then on nothing this process does has any effect.
 */
function dyingDatabase(db: Database, visit: number, when: 'before' | 'after'): Database & { visits: number } {
  const mortal = { ...db, visits: 0 };
  const die =
    (work: (...args: unknown[]) => Promise<unknown>) =>
    async (...args: unknown[]) => {
      mortal.visits += 1;
      if (mortal.visits > visit || (mortal.visits === visit && when === 'before')) throw new Crash('dead');
      const result = await work(...args);
      if (mortal.visits === visit) throw new Crash('dead');
      return result;
    };
  const prisma = new Proxy(db.prisma, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      return name === '$queryRaw' || name === '$executeRaw' || name === '$transaction'
        ? die((member as () => Promise<unknown>).bind(target))
        : member;
    },
  });
  return Object.assign(mortal, { prisma });
}

/** Half a minute passes, and another process needs the token. */
async function successor(company: CompanyKey): Promise<string> {
  await alter(database.db, company, `${EXPIRED}, lease_until = now() - interval '1 second'`);
  const room = oauthRoom(database.db, server);
  return room.manager
    .sourceFor(company)
    .get()
    .then(
      () => 'renewed',
      (error: { code: string }) => error.code,
    );
}

test('a crash at any step: either the next process goes on, or it says precisely that the outcome is unknown', async () => {
  const room = oauthRoom(database.db, server);
  const outcomes: string[] = [];
  for (let visit = 1; ; visit++) {
    let visits = 0;
    for (const when of ['before', 'after'] as const) {
      const { company, token } = await onboarded(room, server);
      await alter(database.db, company, EXPIRED);
      const db = dyingDatabase(database.db, visit, when);
      await oauthRoom(db, server)
        .manager.sourceFor(company)
        .get()
        .catch(() => {});
      visits = db.visits;
      const wasSent = server.uses(token) > 0;
      const { rows } = await database.db.pool.query<{ attempted: boolean; stored: boolean }>(
        `SELECT attempt_started_at IS NOT NULL AS attempted, transient_failures = 0 AND expires_at > now() AS stored
         FROM muster.tokens WHERE company_id = $1`,
        [company.companyId],
      );
      const [row] = rows;
      // The one thing that must never be: sent, not stored, and nothing on record.
      if (wasSent && !row?.stored) expect(row?.attempted).toBe(true);
      const outcome = await successor(company);
      const found = await room.connections.find(company);
      expect(outcome).toBe(wasSent && !row?.stored ? 'reauthorization_required' : 'renewed');
      expect(found?.reauthorizationReason).toBe(outcome === 'renewed' ? null : 'refresh_outcome_unknown');
      expect(server.uses(token)).toBeLessThanOrEqual(2);
      outcomes.push(outcome);
    }
    if (visits < visit) break;
  }
  // Before the answer was stored there is exactly one visit at which the new pair is lost with the process.
  expect(outcomes.filter((outcome) => outcome !== 'renewed')).toHaveLength(1);
  expect(outcomes.length).toBeGreaterThan(10);
});

test('crashed twice with the token sent: the third holder goes on, for no answer was received', async () => {
  const room = oauthRoom(database.db, server);
  const { company, token } = await onboarded(room, server);
  for (let crash = 0; crash < 2; crash++) {
    await alter(database.db, company, `${EXPIRED}, lease_until = NULL`);
    // Dies at the statement that would have written down the 503.
    server.misdeeds.push({ kind: 'answer', status: 503 });
    await oauthRoom(dyingDatabase(database.db, 5, 'before'), server)
      .manager.sourceFor(company)
      .get()
      .catch(() => {});
  }
  expect(server.uses(token)).toBe(2);
  expect(await successor(company)).toBe('renewed');
  expect(server.uses(token)).toBe(3);
});

test('a holder whose lease is nearly over does not send', async () => {
  const room = oauthRoom(database.db, server);
  const { company, token } = await onboarded(room, server);
  await alter(database.db, company, EXPIRED);
  // The clock of a process that was frozen between taking its lease and sending.
  let jump = 0;
  const db = dyingDatabase(database.db, 99, 'before');
  const frozen = oauthRoom(db, server, {
    now: () => Date.now(),
    monotonic: () => performance.now() + (db.visits >= 4 ? (jump = 60_000) : jump),
    sleep: async () => {},
  });
  await expect(frozen.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'token_busy' });
  expect(jump).toBe(60_000);
  expect(server.uses(token)).toBe(0);
  await alter(database.db, company, EXPIRED);
  expect(await successor(company)).toBe('renewed');
});

test.each([
  ['taken over', 'epoch = epoch + 1'],
  ['over', "lease_until = now() - interval '1 second'"],
])('an attempt whose lease is %s by the time that it is written down is not sent', async (_, meanwhile) => {
  const room = oauthRoom(database.db, server);
  const { company, token } = await onboarded(room, server);
  await alter(database.db, company, `${EXPIRED}, lease_until = now() + interval '30 seconds'`);
  const known = await findToken(database.db.prisma, company);
  await alter(database.db, company, meanwhile);
  const attempt = new RefreshAttempt(room.deps, known, {
    sendBefore: Number.POSITIVE_INFINITY,
    stopping: new AbortController().signal,
  });
  await expect(attempt.make()).rejects.toMatchObject({ code: 'token_busy' });
  expect(server.uses(token)).toBe(0);
});

test('a holder whose lease was taken over does not send, and what it knew does no harm', async () => {
  const room = oauthRoom(database.db, server);
  const { company, token } = await onboarded(room, server);
  await alter(database.db, company, `${EXPIRED}, lease_owner = 'somebody', lease_until = now() + interval '20 seconds'`);
  let waited = 0;
  const waiting = oauthRoom(database.db, server, {
    now: () => Date.now(),
    monotonic: () => performance.now() + waited,
    sleep: async (ms) => {
      waited += ms * 40;
    },
  });
  await expect(waiting.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'token_busy', retryable: true });
  expect(server.uses(token)).toBe(0);
});

/** What a call gets in a process that is being stopped. */
const stopping = { status: 'rejected', reason: expect.objectContaining({ code: 'stopping' }) };

test('a process that stops does not wait for the lease of another', async () => {
  const room = oauthRoom(database.db, server);
  const { company } = await onboarded(room, server);
  await alter(database.db, company, `${EXPIRED}, lease_owner = 'somebody', lease_until = now() + interval '10 minutes'`);
  const waiting = Promise.allSettled([room.manager.sourceFor(company).get(), room.manager.refresh(company)]);
  await room.manager.settle();
  expect(await waiting).toEqual([stopping, stopping]);
});

describe('a process that stops begins no refresh, whose pair might be lost with it', () => {
  test('for a call that has just begun', async () => {
    const room = oauthRoom(database.db, server);
    const { company, token } = await onboarded(room, server);
    const sent = server.uses(token);
    await alter(database.db, company, EXPIRED);
    const waiting = Promise.allSettled([room.manager.sourceFor(company).get()]);
    await room.manager.settle();
    expect(await waiting).toEqual([stopping]);
    expect(server.uses(token)).toBe(sent);
  });

  test('under a lease that it is just taking, which it gives back', async () => {
    const room = oauthRoom(database.db, server);
    const { company, token } = await onboarded(room, server);
    const sent = server.uses(token);
    await alter(database.db, company, EXPIRED);
    const holder = await database.db.pool.connect();
    await holder.query('BEGIN; SELECT FROM muster.tokens FOR UPDATE');
    const waiting = Promise.allSettled([room.manager.sourceFor(company).get()]);
    const isBlocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await waitFor(async () => (await database.db.pool.query(isBlocked)).rows.length > 0);
    const settled = room.manager.settle();
    await holder.query('ROLLBACK');
    holder.release();
    await settled;
    expect(await waiting).toEqual([stopping]);
    expect(server.uses(token)).toBe(sent);
    expect(await findToken(database.db.prisma, company)).toMatchObject({ isLeased: false });
  });

  test('whose attempt is just being recorded, which it withdraws', async () => {
    const room = oauthRoom(database.db, server);
    const { company, token } = await onboarded(room, server);
    const sent = server.uses(token);
    await alter(database.db, company, EXPIRED);
    // The last thing looked at before the record are the quiet hours.
    const endOf = () => {
      manager.stopRefreshing();
      return undefined;
    };
    const manager: AccessTokenManager = new AccessTokenManager({ ...room.deps, quiet: { endOf } });
    expect(await Promise.allSettled([manager.sourceFor(company).get()])).toEqual([stopping]);
    expect(server.uses(token)).toBe(sent);
    expect(await findToken(database.db.prisma, company)).toMatchObject({ isLeased: false, isUnanswered: false });
    expect(await room.manager.sourceFor(company).get()).toBeDefined();
  });
});
