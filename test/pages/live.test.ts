import type { Page, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AdminFixture, startAdmin, TOKEN } from '../api/admin-fixture.js';
import { waitFor } from '../support/wait-for.js';
import { hasBrowser, useBrowser } from './browser.js';

// What a tab asks of the server by itself, while it is seen and while it is hidden.

describe.skipIf(!hasBrowser())('a tab', () => {
  const openPage = useBrowser();
  let admin: AdminFixture;
  let id: string;
  let page: Page;
  /** Requests that are under way. */
  const open = new Set<Request>();
  const streams = () => [...open].filter((request) => request.url().endsWith('/events'));
  let asked: string[] = [];

  beforeAll(async () => {
    admin = await startAdmin(undefined, { publicUrl: new URL('http://127.0.0.1') });
    const company = await admin.addCompany();
    const walk = { ...company, resource: 'employees', position: 0, status: 'running', totalRecords: 900 };
    const made = { ...company, trigger: 'manual', mode: 'full', status: 'running', startedAt: new Date() };
    ({ id } = await admin.db.prisma.run.create({ data: { ...made, walks: { create: walk } } }));
    page = await openPage();
    page.on('request', (request) => {
      asked.push(new URL(request.url()).pathname);
      open.add(request);
    });
    page.on('requestfinished', (request) => void open.delete(request));
    page.on('requestfailed', (request) => void open.delete(request));
    await page.goto(admin.url);
    await page.getByLabel('Access token').fill(TOKEN);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  });
  afterAll(() => admin?.stop());

  /** What a browser tells a page whose tab is behind another one. A headless one hides none, so it is told by this. */
  function setHidden(isHidden: boolean): Promise<void> {
    return page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
  }

  const received = (count: number) => admin.db.prisma.walk.updateMany({ where: { runId: id }, data: { received: count } });
  const shown = (count: number) => page.locator('[data-count=received]', { hasText: String(count) }).waitFor();

  test('follows a run by one stream, and by none while it is hidden', async () => {
    await page.goto(`${admin.url}/runs/${id}`);
    await received(100);
    await shown(100);
    expect(streams()).toHaveLength(1);
    await setHidden(true);
    await waitFor(() => streams().length === 0);
    await received(300);
    asked = [];
    await setHidden(false);
    await shown(300);
    expect(streams()).toHaveLength(1);
    expect(asked.filter((path) => path.endsWith('/events'))).toHaveLength(1);
  });

  test('shows one time left, which moves with the records and with time', async () => {
    await admin.db.prisma.run.update({ where: { id }, data: { startedAt: new Date(Date.now() - 100_000) } });
    await page.goto(`${admin.url}/runs/${id}`);
    const left = page.locator('[data-time-left]');
    const seconds = async () => {
      const [, minutes = '0', rest = '0'] =
        /^about (?:(\d+) min ?)?(?:(\d+) s)? ?left$/.exec((await left.textContent()) ?? '') ?? [];
      return Number(minutes) * 60 + Number(rest);
    };
    // 600 records are left, at 3 a second.
    await waitFor(async () => (await seconds()) === 200);
    // The page takes its pace from what the stream says, so the stream has spoken before the records come that are faster.
    await received(310);
    await shown(310);
    await received(600);
    await shown(600);
    // The page was not loaded again. The last records came faster than those before.
    await waitFor(async () => (await seconds()) < 90 && (await seconds()) > 10);
    expect(await left.count()).toBe(1);
    expect(await page.locator('[data-progress=percent]').textContent()).toBe('66');
    // Nothing comes any more, so that more and more time is left.
    const before = await seconds();
    await waitFor(async () => (await seconds()) > before);
  });

  test('ends the stream of a page that it leaves, and of a part that is over', async () => {
    asked = [];
    await page.goto(`${admin.url}/runs/${id}`);
    await admin.db.prisma.run.update({ where: { id }, data: { attempts: 2 } });
    // The page is shown anew, with a stream of its own.
    await waitFor(async () => (await page.locator('#run').getAttribute('data-state'))?.startsWith('running, 2'));
    await waitFor(() => streams().length === 1);
    await page.goto(admin.url);
    await waitFor(() => streams().length === 0);
    expect(asked.filter((path) => path.endsWith('/events')).length).toBeGreaterThanOrEqual(2);
  });

  test('renews the overview while it is seen, and not while it is hidden', async () => {
    await page.clock.install();
    await page.goto(admin.url);
    asked = [];
    await page.clock.fastForward(16_000);
    await waitFor(() => asked.includes('/'));
    await setHidden(true);
    // What was under way is over.
    await waitFor(() => open.size === 0);
    asked = [];
    await page.clock.fastForward(60_000);
    await setHidden(false);
    expect(asked).toEqual([]);
    await page.clock.fastForward(16_000);
    await waitFor(() => asked.includes('/'));
  });
});
