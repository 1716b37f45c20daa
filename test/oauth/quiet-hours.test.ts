import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { QuietHours } from '../../src/core/quiet-hours.js';
import { findOverdue } from '../../src/db/tables/overdue.js';
import { countLateTokens } from '../../src/db/tables/put-off-tokens.js';
import { AccessTokenManager } from '../../src/oauth/access-token-manager.js';
import { changeQuietHours } from '../../src/runs/quiet-hours.js';
import { windowAt } from '../support/quiet.js';
import { alter, EXPIRED, type OauthRoom, oauthRoom, onboarded, trustTokens } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
const HOUR = 3_600_000;
const { windows, ends } = windowAt(systemClock.now(), 2 * HOUR);
const quiet = new QuietHours({ windows, timezone: 'UTC' });

let room: OauthRoom;
/** Refreshes ahead of time and for walks. */
let manager: AccessTokenManager;

beforeEach(async () => {
  await trustTokens(database.db);
  room = oauthRoom(database.db, server);
  manager = new AccessTokenManager({ ...room.deps, quiet });
});

async function expired(quietHours: string | null = null): Promise<CompanyKey> {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, EXPIRED);
  await database.db.prisma.connection.update({ where: { environment_companyId: company }, data: { quietHours } });
  return company;
}

const rowOf = (company: CompanyKey) => database.db.prisma.token.findUniqueOrThrow({ where: { environment_companyId: company } });
const sent = () => server.received.length;

test('a refresh that is due in quiet hours is put off to their end, and is not late', async () => {
  const company = await expired();
  const before = sent();
  expect(await manager.due(10)).toEqual([]);
  expect(await rowOf(company)).toMatchObject({ refreshAt: new Date(ends), quietUntil: new Date(ends), transientFailures: 0 });
  expect(await countLateTokens(database.db.prisma, { environments: ['test'] })).toEqual({ due: 0, overdue: 0 });
  const reader = { query: (text: string, values: unknown[]) => database.db.pool.query(text, values) };
  expect(await findOverdue(reader as never, { environments: ['test'] })).toEqual([]);
  expect(sent()).toBe(before);
});

test('a company that has none is refreshed, behind whatever batch of others', async () => {
  for (let n = 0; n < 5; n++) await expired();
  const company = await expired('none');
  expect(await manager.due(2)).toEqual([company]);
  await manager.refresh(company);
  expect((await rowOf(company)).refreshAt.getTime()).toBeGreaterThan(systemClock.now());
});

test('a walk and a job from before do not send the token; a person who waits has it sent', async () => {
  const company = await expired();
  const before = sent();
  await expect(manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'quiet_hours', retryable: true });
  await alter(database.db, company, EXPIRED);
  await expect(manager.refresh(company)).rejects.toMatchObject({ code: 'quiet_hours' });
  expect(sent()).toBe(before);
  expect(await rowOf(company)).toMatchObject({ ambiguousAttempts: 0, leaseUntil: null, attemptStartedAt: null });
  await room.manager.sourceFor(company).get();
  expect(sent()).toBe(before + 1);
});

test('quiet hours that begin once the attempt is on record leave it without a trace', async () => {
  const company = await expired();
  const before = sent();
  let looks = 0;
  const clock = { ...systemClock, now: () => (++looks === 1 ? ends + HOUR : systemClock.now()) };
  const late = new AccessTokenManager({ ...room.deps, quiet, clock });
  await expect(late.sourceFor(company).get()).rejects.toMatchObject({ code: 'quiet_hours' });
  expect(looks).toBe(2);
  expect(sent()).toBe(before);
  expect(await rowOf(company)).toMatchObject({
    ambiguousAttempts: 0,
    leaseUntil: null,
    attemptStartedAt: null,
    transientFailures: 0,
  });
});

test('a change of the quiet hours makes put-off refreshes due, or moves them', async () => {
  const company = await expired();
  await manager.due(10);
  const longer = windowAt(systemClock.now(), 3 * HOUR);
  await changeQuietHours(database.db, { company, quietHours: longer.text }, { quiet, clock: systemClock });
  expect(await rowOf(company)).toMatchObject({ refreshAt: new Date(longer.ends), quietUntil: new Date(longer.ends) });
  await changeQuietHours(database.db, { company, quietHours: 'none' }, { quiet, clock: systemClock });
  expect(await manager.due(10)).toEqual([company]);
});

test('a due refresh of thousands goes to the queue in batches once they are over', async () => {
  const companies: CompanyKey[] = [];
  for (let n = 0; n < 5; n++) companies.push(await expired());
  await manager.due(10);
  // The end of the quiet hours comes for the database, whose time a test cannot turn.
  await database.db.pool.query(
    `UPDATE muster.tokens SET refresh_at = now() - interval '1 second', quiet_until = now() - interval '1 second'`,
  );
  const over = new AccessTokenManager({ ...room.deps, quiet: new QuietHours({ windows: [], timezone: 'UTC' }) });
  expect(await over.due(3)).toHaveLength(3);
  expect((await countLateTokens(database.db.prisma, { environments: ['test'] })).overdue).toBe(0);
  await Promise.all(companies.map((company) => over.refresh(company)));
  expect(await over.due(3)).toEqual([]);
});
