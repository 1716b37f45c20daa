import { beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { beginTrial, closeBreakers } from '../../src/db/tables/refresh-breakers.js';
import { alter, authorizeElsewhere, EXPIRED, type OauthRoom, oauthRoom, onboarded, trustTokens } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
let room: OauthRoom;

beforeEach(async () => {
  server.most = 0;
  room = oauthRoom(database.db, server);
  await query(`UPDATE muster.refresh_breakers SET is_trusted = FALSE, server_started_at = NULL, watched_since = now(), refused_at = '{}', opened_at = NULL,
    grants = 0, grants_needed = 1, next_trial_at = NULL, trial_company_id = NULL, trial_epoch = NULL, trial_until = NULL`);
});

const query = (text: string) => database.db.pool.query(text);
const breaker = async () => (await query(`SELECT * FROM muster.refresh_breakers WHERE environment = 'test'`)).rows[0];
const isOpen = async () => (await breaker()).opened_at !== null;
/** The code of the error, or `granted`. */
const refresh = (company: CompanyKey, by: OauthRoom = room): Promise<string> =>
  by.manager
    .sourceFor(company)
    .get()
    .then(
      () => 'granted',
      (error: { code: string }) => error.code,
    );
const refreshAll = (companies: readonly CompanyKey[]) => Promise.all(companies.map((company) => refresh(company)));
const onboardedAll = async (count: number) => {
  const all = [];
  for (let i = 0; i < count; i++) all.push(await onboarded(room, server));
  for (const { company } of all) await alter(database.db, company, EXPIRED);
  server.received.length = 0;
  server.most = 0;
  return all;
};
/** As a backup has them: the service knows other tokens by now. */
const spend = (all: readonly { token: string }[]) => all.forEach(({ token }) => server.revoke(token));
const companiesOf = (all: readonly { company: CompanyKey }[]) => all.map(({ company }) => company);
const lost = async () => (await query('SELECT FROM muster.connections WHERE reauthorization_reason IS NOT NULL')).rowCount;
const minutesPass = (minutes: number) =>
  query(`UPDATE muster.refresh_breakers SET next_trial_at = next_trial_at - ${minutes} * interval '1 minute'`);

test('the first refresh is alone, and the others go side by side once it was granted', async () => {
  const [first, ...others] = companiesOf(await onboardedAll(8));
  let alone = 0;
  server.misdeeds.push({
    kind: 'before',
    work: async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      alone = server.received.length;
    },
  });
  const slow = { kind: 'before' as const, work: () => new Promise<void>((resolve) => setTimeout(resolve, 300)) };
  server.misdeeds.push(slow, slow, slow, slow);
  expect(await refreshAll([first!, ...others])).toEqual(Array.from({ length: 8 }, () => 'granted'));
  expect(alone).toBe(1);
  expect(server.most).toBeGreaterThan(1);
  expect(await breaker()).toMatchObject({ is_trusted: true, trial_epoch: null });
});

describe('a backup that was restored in place', () => {
  test('costs three companies, however many are due at once, and however many processes there are', async () => {
    const all = await onboardedAll(20);
    spend(all);
    const rooms = [room, oauthRoom(database.db, server), oauthRoom(database.db, server)];
    const outcomes = await Promise.all(rooms.flatMap((by) => companiesOf(all).map((company) => refresh(company, by))));
    expect(server.received).toHaveLength(3);
    expect(server.most).toBe(1);
    expect(await lost()).toBe(3);
    expect(outcomes.filter((outcome) => outcome === 'tokens_held').length).toBeGreaterThanOrEqual(17 * 3);
    expect(await isOpen()).toBe(true);
    expect(await room.manager.due(100)).toEqual([]);
  });

  test('costs no fourth where a transaction for the next trial began before the third refusal', async () => {
    const all = companiesOf(await onboardedAll(5));
    for (let i = 0; i < 3; i++) server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'invalid_grant' } });
    const begun = await inTransaction(database.db, async (tx) => {
      await tx.$queryRaw`SELECT now()`;
      for (const company of all.slice(0, 3)) await refresh(company);
      const trials = [];
      for (const company of all.slice(3)) trials.push(await beginTrial(tx, { company, epoch: 1n, leaseMs: 30_000 }));
      return trials;
    });
    expect(await isOpen()).toBe(true);
    expect(begun).toEqual([false, false]);
  });

  test('shows by the start of the server, by the table of the tokens, or by a refusal', async () => {
    const all = await onboardedAll(6);
    const companies = companiesOf(all);
    await refreshAll(companies);
    const slow = { kind: 'before' as const, work: () => new Promise<void>((resolve) => setTimeout(resolve, 100)) };
    for (const change of [`server_started_at = server_started_at - interval '1 second'`, 'tokens_table = tokens_table + 1']) {
      await trustTokens(database.db);
      await query(`UPDATE muster.refresh_breakers SET ${change}`);
      for (const company of companies) await alter(database.db, company, EXPIRED);
      server.most = 0;
      server.misdeeds.push(slow, slow, slow, slow, slow, slow);
      expect(await refreshAll(companies)).toEqual(companies.map(() => 'granted'));
      expect(server.most).toBe(1);
      // Of a backup, some tokens are good.
      expect(await breaker()).toMatchObject({ is_trusted: false, grants: 6, grants_needed: 10 });
    }
    await trustTokens(database.db);
    for (const company of companies) await alter(database.db, company, EXPIRED);
    server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'invalid_grant' } });
    expect(await refresh(companies[0]!)).toBe('reauthorization_required');
    expect(await breaker()).toMatchObject({ is_trusted: false, grants: 0, grants_needed: 1 });
    expect(await refresh(companies[1]!)).toBe('granted');
    expect(await breaker()).toMatchObject({ is_trusted: true });
  });

  test('does not count the refreshes that the backup knows of', async () => {
    const all = await onboardedAll(30);
    for (const { company } of all)
      await alter(
        database.db,
        company,
        `refreshed_at = now() - interval '1 minute', expires_at = now() - interval '1 second', refresh_at = now()`,
      );
    await query(
      `UPDATE muster.refresh_breakers SET is_trusted = TRUE, watched_since = now() - interval '1 day', server_started_at = now() - interval '1 day'`,
    );
    spend(all);
    await refreshAll(companiesOf(all));
    expect(await lost()).toBe(3);
  });
});

describe('a breaker opens', () => {
  test('not for a few refusals among many grants', async () => {
    const all = await onboardedAll(20);
    spend(all.slice(10, 13));
    const outcomes = [];
    for (const { company } of all) outcomes.push(await refresh(company));
    expect(outcomes.filter((outcome) => outcome === 'granted')).toHaveLength(17);
    expect(await isOpen()).toBe(false);
  });

  test('not for refusals that are longer ago than ten minutes, and not for a lost answer', async () => {
    const all = await onboardedAll(5);
    spend(all);
    await refresh(all[0]!.company);
    await refresh(all[1]!.company);
    await query(
      `UPDATE muster.refresh_breakers SET refused_at = ARRAY(SELECT at - interval '11 minutes' FROM unnest(refused_at) at)`,
    );
    await refresh(all[2]!.company);
    await alter(database.db, all[3]!.company, 'ambiguous_attempts = 1, attempt_started_at = now()');
    await refresh(all[3]!.company);
    expect(await isOpen()).toBe(false);
    expect((await breaker()).refused_at).toHaveLength(1);
    expect(await lost()).toBe(4);
  });

  test('and another environment goes on', async () => {
    spend(await onboardedAll(3).then(async (all) => (spend(all), await refreshAll(companiesOf(all)), all)));
    const { rows } = await query(`SELECT environment FROM muster.refresh_breakers WHERE opened_at IS NOT NULL`);
    expect(rows).toEqual([{ environment: 'test' }]);
  });
});

describe('an open breaker', () => {
  const opened = async (good: number) => {
    const all = await onboardedAll(3 + good);
    const spent = all.slice(0, 3);
    spend(spent);
    for (const { company } of spent) await refresh(company);
    expect(await isOpen()).toBe(true);
    server.received.length = 0;
    return companiesOf(all.slice(3));
  };

  test('lets the newest pair be tried every five minutes, and closes after two grants in a row', async () => {
    const [a, b, c] = (await opened(3)) as [CompanyKey, CompanyKey, CompanyKey];
    await alter(database.db, b, `refreshed_at = now() - interval '20 minutes'`);
    expect(await refreshAll([a, b, c])).toEqual(['tokens_held', 'tokens_held', 'tokens_held']);
    await minutesPass(5);
    expect(await room.manager.due(10)).toEqual([b]);
    expect(await refreshAll([a, b, c])).toEqual(['tokens_held', 'granted', 'tokens_held']);
    expect(await refreshAll([a, b, c])).toEqual(['tokens_held', 'granted', 'tokens_held']);
    expect(server.received).toHaveLength(1);
    await minutesPass(5);
    const [next] = await room.manager.due(10);
    expect(await refresh(next!)).toBe('granted');
    expect(await breaker()).toMatchObject({ opened_at: null, is_trusted: false, grants_needed: 10 });
    expect(await refreshAll([a, b, c])).toEqual(['granted', 'granted', 'granted']);
  });

  test('is as open as before after a trial that was refused, and after one without an answer', async () => {
    const all = await opened(4);
    await minutesPass(5);
    const [first] = (await room.manager.due(10)) as [CompanyKey];
    expect(await refresh(first)).toBe('granted');
    await minutesPass(5);
    const [second] = (await room.manager.due(10)) as [CompanyKey];
    server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'invalid_grant' } });
    expect(await refresh(second)).toBe('reauthorization_required');
    await minutesPass(5);
    const [third] = (await room.manager.due(10)) as [CompanyKey];
    server.misdeeds.push({ kind: 'answer', status: 503 });
    expect(await refresh(third)).toBe('service_error');
    await alter(database.db, third, EXPIRED);
    expect(await refresh(third)).toBe('tokens_held');
    await minutesPass(5);
    // One that fails keeps no other from its turn.
    const [fourth] = (await room.manager.due(10)) as [CompanyKey];
    expect(await refresh(fourth)).toBe('granted');
    expect(await isOpen()).toBe(true);
    expect(new Set([first, second, third, fourth])).toEqual(new Set(all));
  });

  test('lets a company go on whose pair is newer, and gives out a token that is in force', async () => {
    const [a, b] = (await opened(2)) as [CompanyKey, CompanyKey];
    await authorizeElsewhere(room, server, a);
    await alter(database.db, a, 'refresh_at = now(), expires_at = now()');
    expect(await refresh(a)).toBe('granted');
    await alter(database.db, b, `expires_at = now() + interval '1 minute'`);
    expect(await refresh(b)).toBe('granted');
    expect(server.received).toHaveLength(2);
    expect(await isOpen()).toBe(true);
  });

  test('is closed by a person: one at a time then, and open again after three more', async () => {
    const all = await opened(10);
    expect(await inTransaction(database.db, (tx) => closeBreakers(tx, { environment: 'production' }))).toEqual([]);
    expect(await inTransaction(database.db, (tx) => closeBreakers(tx))).toEqual(['test']);
    server.most = 0;
    for (let i = 0; i < 3; i++) server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'invalid_grant' } });
    await refreshAll(all);
    expect(server.most).toBe(1);
    expect(await lost()).toBe(6);
    expect(await isOpen()).toBe(true);
  });
});

test('a breaker that holds no company any more is not open, and opens again', async () => {
  const all = await onboardedAll(6);
  spend(all.slice(0, 3));
  for (const { company } of all.slice(0, 3)) await refresh(company);
  expect(await isOpen()).toBe(true);
  for (const { company } of all.slice(3)) await authorizeElsewhere(room, server, company);
  for (const { company } of all.slice(3)) await alter(database.db, company, EXPIRED);
  // As in a backup of before that was restored in place: pairs that were spent are newer than the opening.
  await query(`UPDATE muster.tokens SET refreshed_at = now() + interval '1 second' WHERE refreshed_at < now()`);
  await query(`UPDATE muster.refresh_breakers SET refused_at = '{}'`);
  for (let i = 0; i < 3; i++) server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'invalid_grant' } });
  await query(`UPDATE muster.tokens SET refreshed_at = now() - interval '20 minutes'`);
  await query(`UPDATE muster.refresh_breakers SET opened_at = now() - interval '30 minutes'`);
  server.most = 0;
  const outcomes = await refreshAll(companiesOf(all.slice(3)));
  expect(outcomes).toEqual(['reauthorization_required', 'reauthorization_required', 'reauthorization_required']);
  expect(server.most).toBe(1);
  const opened = await query(
    `SELECT opened_at > now() - interval '1 minute' AS now FROM muster.refresh_breakers WHERE environment = 'test'`,
  );
  expect(opened.rows).toEqual([{ now: true }]);
});

test('a token that was sent before a backup was taken, without an answer, counts when it is refused after the restore', async () => {
  const all = await onboardedAll(6);
  await refresh(all[5]!.company);
  await query(`UPDATE muster.refresh_breakers SET tokens_table = tokens_table + 1`);
  for (const { company } of all)
    await alter(database.db, company, `${EXPIRED}, ambiguous_attempts = 1, attempt_started_at = now() - interval '1 hour'`);
  spend(all);
  server.misdeeds.push(
    ...Array.from({ length: 6 }, () => ({ kind: 'answer' as const, status: 400, body: { error: 'invalid_grant' } })),
  );
  await refreshAll(companiesOf(all));
  expect(await lost()).toBe(3);
});

test('a trial whose process died is over with its lease', async () => {
  const [a, b] = companiesOf(await onboardedAll(2)) as [CompanyKey, CompanyKey];
  await query(
    `UPDATE muster.refresh_breakers SET trial_company_id = '${a.companyId}', trial_until = now() + interval '1 second'`,
  );
  const started = performance.now();
  expect(await refresh(b)).toBe('granted');
  expect(performance.now() - started).toBeGreaterThan(500);
});
