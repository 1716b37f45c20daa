import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import {
  claimNotification,
  type EventDetails,
  type EventType,
  listNotifications,
  markRefused,
  releaseNotification,
  resetNotification,
} from '../../src/db/tables/notifications.js';
import { Deliverer, type DelivererDependencies } from '../../src/notifications/deliverer.js';
import { recordEvent } from '../../src/notifications/events.js';
import { Webhook } from '../../src/notifications/webhook.js';
import { createLogger } from '../../src/observability/logger.js';
import { addCompany, sweepOf } from '../runs/issue-world.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { answer, expectedSignature, hang, Receiver } from './receiver.js';

const SECRET = 'canary-signing-secret-77';
const LINK = 'https://muster.example.com/connect/a-capability';
let database: TestDatabase;
let receiver: Receiver;
let webhook: Webhook;

beforeAll(async () => {
  database = await testDatabase();
  // In the transaction that puts the next attempt off, so that the delay is exact, however slow the machine is.
  await database.db.pool.query(`
    CREATE TABLE public.delays (n serial, notification uuid, seconds float8);
    CREATE FUNCTION public.note_delay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO public.delays (notification, seconds) VALUES (NEW.id, extract(epoch FROM NEW.next_attempt_at - now())); RETURN NULL; END $$;
    CREATE TRIGGER note_delay AFTER UPDATE ON muster.notifications FOR EACH ROW EXECUTE FUNCTION public.note_delay()`);
});
beforeEach(async () => {
  await emptyTables(database.db, 'muster.notifications', 'muster.connections', 'mirror.companies');
  receiver = await Receiver.start();
  webhook = new Webhook({ url: receiver.url, secret: new Secret(SECRET) }, systemClock);
});
afterEach(async () => {
  await webhook.close();
  await receiver.goDown();
});
afterAll(() => database.close());

const deliverer = (deps: Partial<DelivererDependencies> = {}) =>
  new Deliverer({
    db: database.db,
    webhook,
    publicUrl: new URL('https://muster.example.com/base/'),
    authorizeUrl: async () => LINK,
    logger: pino({ enabled: false }),
    random: () => 0.5,
    ...deps,
  });

/** Records an event of a company that is onboarded, and gives the event's id. */
async function recorded(type: EventType = 'run_failed', details: EventDetails = {}, reason?: string): Promise<string> {
  const company: CompanyKey = { environment: 'test', companyId: randomUUID() };
  const { prisma } = database.db;
  await prisma.connection.create({ data: { ...company, ...(reason && { reauthorizationReason: reason }) } });
  await prisma.company.create({ data: { ...company, name: 'Brattskjær "Båt" AS' } });
  await inTransaction(database.db, (tx) => recordEvent(tx, { type, company, change: randomUUID(), details }));
  return (await prisma.notification.findFirstOrThrow({ where: { companyId: company.companyId } })).id;
}

const row = (id: string) => database.db.prisma.notification.findUniqueOrThrow({ where: { id } });
const secondsUntilNext = async (id: string) =>
  (
    await database.db.pool.query<{ seconds: number }>(
      'SELECT round(seconds)::int AS seconds FROM public.delays WHERE notification = $1 ORDER BY n DESC LIMIT 1',
      [id],
    )
  ).rows[0]!.seconds;
const makeDue = (id: string) =>
  database.db.pool.query(`UPDATE muster.notifications SET next_attempt_at = now() WHERE id = $1`, [id]);

describe('what is sent', () => {
  test('is signed as documented, and says what happened', async () => {
    const before = Math.floor(Date.now() / 1_000);
    const id = await recorded('reauthorization_required', { reason: 'token_refused' }, 'token_refused');
    await deliverer().deliver(id);
    const { headers, body, event, path } = receiver.received[0]!;
    const { companyId, occurredAt } = await row(id);
    expect(event).toEqual({
      id,
      type: 'reauthorization_required',
      occurred_at: occurredAt.toISOString(),
      environment: 'test',
      company_id: companyId,
      company_name: 'Brattskjær "Båt" AS',
      reason: 'token_refused',
      authorize_url: LINK,
      admin_url: `https://muster.example.com/base/api/companies/test/${companyId}`,
    });
    const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['muster-signature']))!;
    expect(hex).toBe(expectedSignature(body, SECRET, seconds!));
    expect(Number(seconds)).toBeGreaterThanOrEqual(before);
    expect(Number(seconds)).toBeLessThanOrEqual(Date.now() / 1_000);
    expect([headers['muster-event-id'], headers['content-type']]).toEqual([id, 'application/json']);
    expect(path).toBe('/hooks/muster?key=canary-of-the-address');
    expect(body + JSON.stringify(headers)).not.toContain(SECRET);
    expect(await row(id)).toMatchObject({ status: 'delivered', attempts: 1, nextAttemptAt: null, lastError: null });
  });

  test('of an issue names no company, and leads to the issue', async () => {
    await addCompany(database.db, { lists: { employees: { provedHoursAgo: 30 } } });
    await sweepOf(database.db)();
    const { id } = await database.db.prisma.notification.findFirstOrThrow();
    const issue = await database.db.prisma.issue.findFirstOrThrow();
    await deliverer().deliver(id);
    const { occurredAt } = await row(id);
    expect(receiver.received[0]!.event).toEqual({
      id,
      type: 'list_late',
      cause: 'list_late',
      occurred_at: occurredAt.toISOString(),
      environment: 'test',
      issue_id: issue.id,
      issue_status: 'ongoing',
      resource: 'employees',
      count: 1,
      admin_url: `https://muster.example.com/base/api/issues/${issue.id}`,
    });
    await database.db.pool.query(`UPDATE muster.notifications SET occurred_at = now() - interval '91 days'`);
    await deliverer().tidy();
    expect(await database.db.prisma.notification.count()).toBe(0);
  });

  test('is verified by the code in the documentation', async () => {
    const [, code] = /```js\n([\s\S]*?)```/.exec(readFileSync(new URL('../../docs/notifications.md', import.meta.url), 'utf8'))!;
    const folder = mkdtempSync(join(tmpdir(), 'muster-'));
    const file = join(folder, 'verify.mjs');
    writeFileSync(file, code!);
    const { isFromMuster } = (await import(pathToFileURL(file).href)) as {
      isFromMuster(body: string | Buffer, header: string, secret: string): boolean;
    };
    rmSync(folder, { recursive: true });
    await deliverer().deliver(await recorded());
    const { body, headers } = receiver.received[0]!;
    const header = String(headers['muster-signature']);
    expect(isFromMuster(Buffer.from(body), header, SECRET)).toBe(true);
    expect(isFromMuster(body, header, `${SECRET}x`)).toBe(false);
    expect(isFromMuster(`${body} `, header, SECRET)).toBe(false);
    expect(
      isFromMuster(
        body,
        header.replace(/t=\d+/, (t) => `t=${Number(t.slice(2)) + 1}`),
        SECRET,
      ),
    ).toBe(false);
    const old = Math.floor(Date.now() / 1_000) - 600;
    expect(isFromMuster(body, `t=${old},v1=${expectedSignature(body, SECRET, String(old))}`, SECRET)).toBe(false);
    expect(isFromMuster(body, '', SECRET)).toBe(false);
  });

  test('has no link once the company has authorized, and goes without one that cannot be made', async () => {
    await deliverer().deliver(await recorded('reauthorization_required', { reason: 'token_refused' }));
    const fails = () => Promise.reject(new Error('no link'));
    await deliverer({ authorizeUrl: fails }).deliver(
      await recorded('reauthorization_required', { reason: 'token_refused' }, 'token_refused'),
    );
    expect(receiver.received.map(({ event }) => [event.reason, 'authorize_url' in event])).toEqual([
      ['token_refused', false],
      ['token_refused', false],
    ]);
  });

  test.each([
    ['run_failed', { run_id: 'r-1', reason: 'walks_failed' }, '/api/runs/r-1'],
    ['run_recovered', { run_id: 'r-2' }, '/api/runs/r-2'],
    ['deletions_held', { resource: 'employees', run_id: 'r-3', count: 12 }, '/api/holds?status=open'],
  ] as const)('%s names its facts', async (type, details, path) => {
    await deliverer().deliver(await recorded(type, details, 'token_refused'));
    expect(receiver.received[0]!.event).toMatchObject({ ...details, admin_url: `https://muster.example.com/base${path}` });
    expect(receiver.received[0]!.event).not.toHaveProperty('authorize_url');
  });
});

describe('an attempt that fails', () => {
  test.each([500, 503, 429, 408])('is made again after %i, later and later, and given up after a day', async (status) => {
    receiver.conduct = answer(status);
    const id = await recorded();
    const delays: number[] = [];
    while ((await row(id)).status === 'pending') {
      await makeDue(id);
      await deliverer().deliver(id);
      if ((await row(id)).status === 'pending') delays.push(await secondsUntilNext(id));
    }
    expect(delays).toEqual([5, 15, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 28_800]);
    expect(receiver.ids).toEqual(Array.from({ length: 12 }, () => id));
    expect(await row(id)).toMatchObject({ status: 'failed', nextAttemptAt: null, lastError: { code: 'answered', status } });
  });

  test.each([
    [400, 7],
    [401, 7],
    [404, 7],
    [302, 7],
    [410, 1],
  ])('with %i is made %i times', async (status, attempts) => {
    receiver.conduct = answer(status, { location: new URL('/elsewhere', receiver.url).href });
    const id = await recorded();
    while ((await row(id)).status === 'pending') {
      await makeDue(id);
      await deliverer().deliver(id);
    }
    expect(await row(id)).toMatchObject({ status: 'failed', attempts, lastError: { code: 'answered', status } });
    // A redirect is followed nowhere: the signature and the link are for one address.
    expect(new Set(receiver.received.map(({ path }) => path))).toEqual(new Set(['/hooks/muster?key=canary-of-the-address']));
  });

  test('waits as long as it is asked to, within reason', async () => {
    const id = await recorded();
    for (const [asked, seconds] of [
      ['2', 5],
      ['120', 120],
      ['99999999', 3_600],
    ] as const) {
      receiver.conduct = answer(429, { 'retry-after': asked });
      await database.db.pool.query('UPDATE muster.notifications SET attempts = 0, next_attempt_at = now()');
      await deliverer().deliver(id);
      expect(await secondsUntilNext(id)).toBe(seconds);
    }
  });

  test('because no receiver answers is noticed at the deadline', async () => {
    const target = { url: receiver.url, secret: new Secret(SECRET) };
    const impatient = new Webhook(target, systemClock, { deadlineMs: 1_500 });
    receiver.conduct = hang;
    const id = await recorded();
    await deliverer({ webhook: impatient }).deliver(id);
    expect(await row(id)).toMatchObject({ status: 'pending', lastError: { code: 'timeout' } });
    receiver.conduct = (response) => void response.writeHead(200).write('never ended');
    await makeDue(id);
    await deliverer({ webhook: impatient }).deliver(id);
    expect(await row(id)).toMatchObject({ status: 'delivered', attempts: 2 });
    await impatient.close();
  });

  test('because the receiver is away is made up for when it is back', async () => {
    const id = await recorded();
    await receiver.goDown();
    await deliverer().deliver(id);
    expect(await row(id)).toMatchObject({ status: 'pending', lastError: { code: 'unreachable', cause: 'ECONNREFUSED' } });
    await receiver.comeBack();
    await deliverer().deliver(id);
    expect(receiver.received).toHaveLength(0); // not due yet
    await makeDue(id);
    await deliverer().deliver(id);
    expect(receiver.ids).toEqual([id]);
    expect(await row(id)).toMatchObject({ status: 'delivered', lastError: null });
  });

  test('is logged with why it failed', async () => {
    const lines: string[] = [];
    const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
    receiver.conduct = answer(503);
    await deliverer({ logger }).deliver(await recorded());
    receiver.conduct = answer(410);
    await deliverer({ logger }).deliver(await recorded());
    await receiver.goDown();
    await deliverer({ logger }).deliver(await recorded());
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { msg: 'notification not delivered', reason: 'answered', status: 503 },
      { msg: 'notification given up', reason: 'answered', status: 410 },
      { msg: 'notification not delivered', reason: 'unreachable', cause: 'ECONNREFUSED' },
    ]);
    await receiver.comeBack();
  });

  test('because the connection breaks is made again', async () => {
    receiver.conduct = (response) => response.socket?.destroy();
    const id = await recorded();
    await deliverer().deliver(id);
    expect(await row(id)).toMatchObject({ status: 'pending', lastError: { code: 'unreachable' } });
  });
});

describe('who sends', () => {
  test('is one of many that try at once', async () => {
    const id = await recorded();
    await Promise.all(Array.from({ length: 8 }, () => deliverer().deliver(id)));
    expect(receiver.ids).toEqual([id]);
  });

  test('and dies before writing it down is followed by another, with the same id', async () => {
    const id = await recorded();
    await database.db.pool.query(`
      CREATE FUNCTION muster.die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'killed here'; END $$;
      CREATE TRIGGER die BEFORE UPDATE ON muster.notifications FOR EACH ROW WHEN (NEW.status = 'delivered') EXECUTE FUNCTION muster.die()`);
    await expect(deliverer().deliver(id)).rejects.toThrow('killed here');
    await database.db.pool.query('DROP FUNCTION muster.die CASCADE');
    await deliverer().deliver(id);
    expect(receiver.ids).toEqual([id]);
    expect(await secondsUntilNext(id)).toBeGreaterThan(15);
    await makeDue(id);
    await deliverer().deliver(id);
    expect(receiver.ids).toEqual([id, id]);
    expect(await row(id)).toMatchObject({ status: 'delivered' });
  });

  test('and is stopped leaves it to another at once, and nothing is counted', async () => {
    const id = await recorded();
    const control = new AbortController();
    receiver.conduct = () => control.abort();
    await deliverer().deliver(id, control.signal);
    expect(await row(id)).toMatchObject({ status: 'pending', attempts: 0, lastError: null });
    receiver.conduct = answer(200);
    await deliverer().deliver(id);
    expect(await row(id)).toMatchObject({ status: 'delivered', attempts: 1 });
  });

  test('and is late cannot undo a receipt', async () => {
    const id = await recorded();
    const slow = (await claimNotification(database.db, { id }))!;
    await makeDue(id);
    await deliverer().deliver(id);
    await markRefused(database.db, { ...slow, error: { code: 'timeout' }, delaySeconds: 5 });
    await releaseNotification(database.db, slow);
    expect(await row(id)).toMatchObject({ status: 'delivered', attempts: 2, lastError: null });
  });
});

describe('without a webhook', () => {
  test('nothing is sent, and what is a day old is given up', async () => {
    const [fresh, old] = [await recorded(), await recorded()];
    await database.db.pool.query(`UPDATE muster.notifications SET next_attempt_at = now() - interval '25 hours' WHERE id = $1`, [
      old,
    ]);
    const silent = deliverer({ webhook: undefined });
    expect(await silent.due(10)).toEqual([]);
    await silent.deliver(fresh);
    await silent.tidy();
    expect(await row(fresh)).toMatchObject({ status: 'pending', attempts: 0 });
    expect(await row(old)).toMatchObject({ status: 'failed', lastError: { code: 'expired' }, nextAttemptAt: null });
    expect(await deliverer().due(10)).toEqual([{ id: fresh, attempts: 0 }]);
  });
});

test('old notifications are forgotten, but not how a company stands', async () => {
  const [first, second] = [await recorded(), await recorded()];
  const { companyId } = await row(second);
  await database.db.pool.query(
    `UPDATE muster.notifications SET company_id = $1, status = 'delivered', occurred_at = now() - interval '91 days'`,
    [companyId],
  );
  await deliverer().tidy();
  expect(await database.db.prisma.notification.findMany({ select: { id: true } })).toEqual([{ id: second }]);
  expect(first).not.toBe(second);
});

test('they are listed newest first, page by page, and sent once more when asked for', async () => {
  const { db } = database;
  const ids = [await recorded('run_failed', { reason: 'walks_failed' }), await recorded('deletions_held'), await recorded()];
  receiver.conduct = answer(410);
  for (const id of ids) await deliverer().deliver(id);
  const first = await listNotifications(db, { limit: 2 });
  const rest = await listNotifications(db, { limit: 2, cursor: first.nextCursor! });
  expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(ids.toReversed());
  expect(rest).toMatchObject({ data: [{ details: { reason: 'walks_failed' }, lastError: { code: 'answered', status: 410 } }] });
  expect(rest.nextCursor).toBeUndefined();
  expect((await listNotifications(db, { limit: 9, type: 'deletions_held' })).data).toHaveLength(1);
  expect((await listNotifications(db, { limit: 9, status: 'pending' })).data).toHaveLength(0);

  receiver.conduct = answer(200);
  expect(await resetNotification(db, { id: ids[0]! })).toMatchObject({ status: 'pending', attempts: 0, lastError: null });
  await deliverer().deliver(ids[0]!);
  expect(await listNotifications(db, { limit: 9, status: 'delivered' })).toMatchObject({ data: [{ id: ids[0], attempts: 1 }] });
  await expect(resetNotification(db, { id: randomUUID() })).rejects.toMatchObject({ code: 'notification_not_found' });
});
