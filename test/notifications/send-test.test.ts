import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { Deliverer } from '../../src/notifications/deliverer.js';
import { Webhook } from '../../src/notifications/webhook.js';
import { type AdminFixture, startAdmin, TOKEN } from '../api/admin-fixture.js';
import { runMuster } from '../cli/run-muster.js';
import { PageClient } from '../dashboard/page-client.js';
import { answer, expectedSignature, Receiver } from './receiver.js';

const SECRET = 'canary-signing-secret-of-tests';
let admin: AdminFixture;
let receiver: Receiver;
let webhook: Webhook;
beforeAll(async () => {
  receiver = await Receiver.start();
  webhook = new Webhook({ url: receiver.url, secret: new Secret(SECRET) }, systemClock);
  admin = await startAdmin(undefined, { webhook });
});
afterAll(async () => {
  await admin?.stop();
  await webhook.close();
  await receiver.goDown();
});

/** What a worker does with what is due. */
async function deliver(): Promise<void> {
  const deps = { db: admin.db, webhook, logger: pino({ enabled: false }), authorizeUrl: () => undefined };
  const deliverer = new Deliverer({ ...deps, publicUrl: new URL('https://muster.example') });
  for (const { id } of await deliverer.due(10)) await deliverer.deliver(id);
}

const shown = async (id: string) => {
  const { data } = (await admin.call('GET', '/api/notifications?type=test')).json;
  return data.find((one: { id: string }) => one.id === id);
};

test('a test goes the way of every event: listed as pending, signed, delivered, and in the audit', async () => {
  const { status, json } = await admin.call('POST', '/api/notifications/test');
  expect([status, json]).toEqual([
    201,
    expect.objectContaining({ type: 'test', environment: 'test', company_id: null, status: 'pending', attempts: 0 }),
  ]);
  await deliver();
  const { event, headers, body } = receiver.received.find((one) => one.event.id === json.id)!;
  expect(event).toEqual({
    id: json.id,
    type: 'test',
    occurred_at: json.occurred_at,
    environment: 'test',
    admin_url: 'https://muster.example/api/notifications?type=test',
  });
  const [, seconds, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['muster-signature']))!;
  expect([signature, headers['muster-event-id']]).toEqual([expectedSignature(body, SECRET, seconds!), json.id]);
  expect(await shown(json.id)).toMatchObject({ status: 'delivered', attempts: 1 });
  const entry = await admin.db.prisma.auditEntry.findFirst({ where: { action: 'notification.test' } });
  expect(entry).toMatchObject({ actor: 'admin', environment: 'test', companyId: null, details: { outcome: 'done' } });
});

test('each is an event of its own, of the environment that is named', async () => {
  const ids = new Set<string>();
  for (const body of [{ environment: 'production' }, { environment: 'production' }, {}]) {
    const { json } = await admin.call('POST', '/api/notifications/test', body);
    expect(json.environment).toBe(body.environment ?? 'test');
    ids.add(json.id);
  }
  expect(ids.size).toBe(3);
  await deliver();
  expect(receiver.ids).toEqual(expect.arrayContaining([...ids]));
  expect((await admin.call('POST', '/api/notifications/test', { environment: 'x' })).status).toBe(400);
});

test('the command line sends one', async () => {
  const { code, ...outcome } = await runMuster(['notifications', 'test', '--json', '--url', admin.url], {
    MUSTER_ADMIN_TOKEN: TOKEN,
  });
  expect([code, outcome.json()]).toEqual([
    0,
    [expect.objectContaining({ type: 'test', environment: 'test', status: 'pending' })],
  ]);
});

test('a button sends one, and the page shows it', async () => {
  const page = await PageClient.signedIn(admin.url);
  await page.open('/notifications');
  const { status, location } = await page.act('notification.test', { back: '/notifications' });
  expect([status, location]).toEqual([303, '/notifications?done=notification.test']);
  const { html } = await page.open(location!);
  expect(html).toContain('Muster sends a test');
  expect(html).toMatch(/<span id="event-[^"]+">test/);
});

test('since when the webhook takes nothing is kept until it takes something, and all can be sent again', async () => {
  const failingSince = async () => (await admin.db.prisma.webhookState.findFirstOrThrow()).failingSince;
  await deliver();
  expect(await failingSince()).toBeNull();
  receiver.conduct = answer(500);
  for (const environment of ['production', 'test']) await admin.call('POST', '/api/notifications/test', { environment });
  await deliver();
  const first = await failingSince();
  expect(first).toBeInstanceOf(Date);
  await admin.db.prisma.notification.updateMany({ where: { status: 'pending' }, data: { nextAttemptAt: new Date(0) } });
  await deliver();
  expect([await failingSince(), (await admin.db.prisma.webhookState.findFirstOrThrow()).lastError]).toEqual([
    first,
    { code: 'answered', status: 500 },
  ]);
  await deliver(); // nothing is due for some seconds
  receiver.conduct = answer(204);
  const operate = (...args: string[]) =>
    runMuster(['notifications', 'redeliver-all', ...args, '--json', '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN });
  expect((await operate('--environment', 'production')).json()).toEqual([{ queued: 1 }]);
  const again = await admin.call('POST', '/api/notifications/redeliver');
  expect([again.status, again.json]).toEqual([202, { queued: 1 }]);
  await deliver();
  expect([await failingSince(), await admin.db.prisma.notification.count({ where: { status: 'pending' } })]).toEqual([null, 0]);
  expect((await admin.call('POST', '/api/notifications/redeliver')).json).toEqual({ queued: 0 });
  const entries = await admin.db.prisma.auditEntry.findMany({
    where: { action: 'notifications.redeliver' },
    orderBy: { id: 'asc' },
  });
  expect(entries.map(({ environment }) => environment)).toEqual(['production', null, null]);
});

test('where no webhook is set it says so, and what to do', async () => {
  const silent = await startAdmin();
  try {
    const { status, json } = await silent.call('POST', '/api/notifications/test');
    expect([status, json.code]).toEqual([409, 'webhook_not_configured']);
    expect(json.detail).toContain('set NOTIFY_WEBHOOK_URL and NOTIFY_WEBHOOK_SECRET');
    expect(await silent.db.prisma.notification.count()).toBe(0);
    const entry = await silent.db.prisma.auditEntry.findFirst({ where: { action: 'notification.test' } });
    expect(entry).toMatchObject({ details: { outcome: 'webhook_not_configured' } });
  } finally {
    await silent.stop();
  }
});
