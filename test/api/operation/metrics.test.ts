import { Gauge, Registry } from 'prom-client';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { Secret } from '../../../src/core/secret.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

const SCRAPER = 'a-token-of-scrapers-91';

let admin: AdminFixture | undefined;
afterEach(() => admin?.stop());

/** A registry that counts how often it is read, and takes `read` for it. */
function counted(read: () => Promise<void>) {
  const metrics = new Registry();
  let scrapes = 0;
  const gauge = new Gauge({
    name: 'muster_scrapes',
    help: 'Scrapes.',
    registers: [metrics],
    async collect() {
      scrapes += 1;
      await read();
      gauge.set(scrapes);
    },
  });
  return { metrics, scrapes: () => scrapes };
}

test('however many scrape, the database is read once at a time, and the answer is kept for some seconds', async () => {
  let now = 0;
  let finish = () => {};
  const { metrics, scrapes } = counted(() => new Promise((resolve) => (finish = resolve)));
  admin = await startAdmin(undefined, { metrics, clock: { ...systemClock, monotonic: () => now } });
  const { fetch } = admin;
  const scrape = async () => (await fetch('/metrics')).text();
  const many = Array.from({ length: 20 }, scrape);
  await Promise.all(Array.from({ length: 20 }, () => fetch('/healthz'))); // by now all of them have arrived
  finish();
  expect(new Set(await Promise.all(many)).size).toBe(1);
  expect(await scrape()).toContain('muster_scrapes 1');
  expect(scrapes()).toBe(1);
  now += 5_001;
  const next = scrape();
  while (scrapes() === 1) await fetch('/healthz');
  finish();
  expect(await next).toContain('muster_scrapes 2');
});

test('a scrape that fails is tried again by the next scraper', async () => {
  let fails = true;
  const { metrics } = counted(async () => {
    if (fails) throw new Error('away');
  });
  admin = await startAdmin(undefined, { metrics });
  expect((await admin.fetch('/metrics')).status).toBe(500);
  fails = false;
  expect((await admin.fetch('/metrics')).status).toBe(200);
});

test('with a token of their own, nobody scrapes without it, and it opens nothing else', async () => {
  admin = await startAdmin(undefined, { metricsToken: new Secret(SCRAPER) });
  const { fetch } = admin;
  const status = async (path: string, token?: string) =>
    (await fetch(path, { headers: token ? { authorization: `Bearer ${token}` } : {} })).status;
  expect([await status('/metrics'), await status('/metrics', 'wrong'), await status('/metrics', SCRAPER)]).toEqual([
    401, 401, 200,
  ]);
  expect([await status('/metrics', TOKEN), await status('/readyz'), await status('/healthz')]).toEqual([200, 200, 200]);
  expect(await status('/api/companies', SCRAPER)).toBe(401);
});
