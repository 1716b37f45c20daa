import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type App, startApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import type { CompanyKey, Environment } from '../../src/core/company.js';
import { createLogger } from '../../src/observability/logger.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { documentedFetch } from '../support/documented-answers.js';
import { waitFor } from '../support/wait-for.js';
import { hasBrowser, useBrowser } from './browser.js';

const TOKEN = 'an-admin-token-of-tests';
const LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><circle cx="20" cy="20" r="20" fill="#1f5fd6"/></svg>';
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PHONE = { viewport: { width: 320, height: 640 } };
const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
const COMPANIES = [
  { companyId: id(1), name: 'Brattskjær Båtbyggeri AS', employees: 3 },
  { companyId: id(2), name: `<img src=x onerror="document.title='pwned'"> & Sønner`, employees: 2 },
  { companyId: id(3), name: 'Havgløtt Sjømat AS', employees: 1 },
  { companyId: id(4), name: 'Ekdal Regnskap', employees: 1 },
];

describe.skipIf(!hasBrowser())('a customer connects a company', () => {
  const openPage = useBrowser();
  const sandboxes = {} as Record<Environment, Sandbox>;
  const home = mkdtempSync(join(tmpdir(), 'muster-browser-'));
  let database: TestDatabase;
  let app: App;

  beforeAll(async () => {
    const port = await freePort();
    const callback = `http://127.0.0.1:${port}/oauth/callback`;
    for (const environment of ['production', 'test'] as const)
      sandboxes[environment] = await startSandbox({ companies: COMPANIES, redirectUris: [callback] });
    database = await testDatabase();
    const settings = Object.entries(sandboxes).flatMap(([environment, { url, clientId, clientSecret }]) => {
      const prefix = environment.toUpperCase();
      const values = { BASE_URL: url.href, AUTH_URL: url.href, CLIENT_ID: clientId, CLIENT_SECRET: clientSecret.reveal() };
      return Object.entries(values).map(([name, value]) => [`${prefix}_${name}`, value]);
    });
    const logo = join(home, 'logo.svg');
    writeFileSync(logo, LOGO);
    const config = loadConfig({
      ...Object.fromEntries(settings),
      DATABASE_URL: database.url,
      MUSTER_HOME: home,
      MUSTER_ADMIN_TOKEN: TOKEN,
      MUSTER_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
      PORT: String(port),
      OPERATOR_NAME: 'Nordlys Regnskap AS',
      OPERATOR_LOGO: logo,
      OPERATOR_CONTACT: 'hjelp@nordlys.example',
      CONNECT_RETURN_URL: 'https://nordlys.example/welcome',
    });
    app = await startApp(config, new Set(['api', 'worker']), createLogger({ level: 'silent' }));
  });
  afterAll(async () => {
    await app?.stop();
    for (const sandbox of Object.values(sandboxes)) await sandbox.stop();
    await database?.close();
    rmSync(home, { recursive: true });
  });

  const fetchDocumented = documentedFetch(() => app.url!);

  async function newLink(environment: Environment, companyId?: string): Promise<string> {
    const response = await fetchDocumented('/api/connect-links', {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ environment, company_id: companyId }),
    });
    return ((await response.json()) as { url: string }).url;
  }

  const REQUEST = 'A request to read your company’s data';

  /** Opens a link, and goes on to the consent screen. */
  async function follow(page: Page, link: string): Promise<void> {
    await page.goto(link);
    expect(await title(page)).toBe(REQUEST);
    await expectSound(page);
    await page.getByRole('link', { name: 'Continue' }).click();
  }

  const title = (page: Page) => page.locator('h1').innerText();

  /** On the consent screen. */
  async function decide(page: Page, decision: 'Allow' | 'Deny', companyId?: string): Promise<void> {
    expect(await title(page)).toBe('Muster asks for access to your company');
    if (companyId) await page.getByLabel('Company').selectOption(companyId);
    await page.getByRole('button', { name: decision }).click();
    await page.waitForURL(/\/oauth\/callback\?/);
  }

  /** No script may run, nothing may be wider than a phone, and everything loads: what a person would call broken. */
  async function expectSound(page: Page): Promise<void> {
    expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true);
    expect(await page.title()).not.toContain('pwned');
    // The content security policy lets the style through.
    expect(await page.evaluate('getComputedStyle(document.querySelector("main")).maxWidth')).toBe('432px');
    expect(await faultsOf(page)).toEqual([]);
    if (!/\/(connect|oauth)\//.test(page.url())) return;
    const shown = await page.locator('body').innerText();
    expect(shown).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-|\btest\b|sandbox|token|muster/i);
    expect(shown).toContain('hjelp@nordlys.example');
    expect(await page.evaluate('document.querySelector("header img").naturalWidth > 0')).toBe(true);
  }

  async function faultsOf(page: Page): Promise<string[]> {
    // Through the debugger, since the policy of the page lets no script of ours in.
    if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE);
    return page.evaluate(
      `axe.run('main, header, footer', { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, help }) => id + ' ' + help))`,
    );
  }

  async function mirrored(company: CompanyKey): Promise<void> {
    await waitFor(async () => (await app.runs.list({ ...company, limit: 1 })).data[0]?.status === 'succeeded', {
      what: 'the first sync',
    });
  }

  test('allows, in both environments side by side', async () => {
    const companyId = id(1);
    const pages = { production: await openPage(PHONE), test: await openPage(PHONE) };
    for (const environment of ['production', 'test'] as const) await follow(pages[environment], await newLink(environment));
    for (const environment of ['test', 'production'] as const) {
      const page = pages[environment];
      expect(page.url().startsWith(sandboxes[environment].url.href)).toBe(true);
      await decide(page, 'Allow', companyId);
      expect(await title(page)).toBe('The company is connected');
      const back = page.getByRole('link', { name: 'Back to Nordlys Regnskap AS' });
      expect(await back.getAttribute('href')).toBe('https://nordlys.example/welcome');
      await expectSound(page);
    }
    for (const environment of ['test', 'production'] as const) {
      await mirrored({ environment, companyId });
      expect(await database.db.prisma.employee.count({ where: { environment, companyId } })).toBe(3);
    }
  });

  test('denies, starts again from that page, and allows', async () => {
    const page = await openPage(PHONE);
    await follow(page, await newLink('test'));
    await decide(page, 'Deny');
    expect(await title(page)).toBe('Access was not granted');
    await expectSound(page);
    await page.getByRole('link', { name: 'Start again' }).click();
    await decide(page, 'Allow', id(2));
    expect(await title(page)).toBe('The company is connected');
    await mirrored({ environment: 'test', companyId: id(2) });
  });

  test('chooses another company than the link names, and then the right one', async () => {
    const page = await openPage(PHONE);
    await follow(page, await newLink('test', id(3)));
    expect(await page.getByLabel('Company').inputValue()).toBe(id(3));
    await decide(page, 'Allow', id(4));
    expect(await title(page)).toBe('Another company was chosen');
    await expectSound(page);
    expect(await app.connections.find({ environment: 'test', companyId: id(4) })).toBeUndefined();
    await page.getByRole('link', { name: 'Start again' }).click();
    await decide(page, 'Allow');
    expect(await title(page)).toBe('The company is connected');
    expect(await app.connections.find({ environment: 'test', companyId: id(3) })).toMatchObject({ status: 'active' });
  });

  test('opens the link again, reloads, goes back: it was used once', async () => {
    const link = await newLink('test', id(4));
    const page = await openPage(PHONE);
    await follow(page, link);
    await decide(page, 'Allow');
    expect(await title(page)).toBe('The company is connected');
    await page.reload();
    expect(await title(page)).toBe('This link has been used');
    await page.goto(link);
    expect(await title(page)).toBe('This link has been used');
    await expectSound(page);
    const exchanges = sandboxes.test.requests.all('/auth/token').filter(({ input }) => input.grant_type === 'authorization_code');
    expect(exchanges.length).toBe(5);
  });

  test('every page is sound in Norwegian, on a phone and wide, light and dark', async () => {
    const page = await openPage({ ...PHONE, locale: 'nb-NO', javaScriptEnabled: true });
    async function expectSoundInEveryLook(): Promise<void> {
      for (const colorScheme of ['light', 'dark'] as const)
        for (const viewport of [PHONE.viewport, { width: 1440, height: 900 }]) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize(viewport);
          await expectSound(page);
        }
    }
    await page.goto(await newLink('test', id(3)));
    expect(await title(page)).toBe('En forespørsel om å lese virksomhetens data');
    expect(await page.locator('li').allTextContents()).toEqual(['virksomhetens navn og opplysninger', 'ansatte', 'avdelinger']);
    expect(await page.locator('main').innerText()).toContain(
      'Nordlys Regnskap AS ber om tillatelse til å lese data fra Havgløtt Sjømat AS.',
    );
    await expectSoundInEveryLook();
    await page.getByRole('link', { name: 'Fortsett' }).click();
    await page.getByRole('button', { name: 'Deny' }).click();
    expect(await title(page)).toBe('Tilgangen ble ikke gitt');
    await expectSoundInEveryLook();
    await page.goto(`${app.url}/connect/unknown`);
    expect(await title(page)).toBe('Denne lenken er ukjent');
    await expectSoundInEveryLook();
  });

  test('is asked again after access was revoked, by the address that the API shows', async () => {
    const company: CompanyKey = { environment: 'test', companyId: id(2) };
    sandboxes.test.revoke(company.companyId);
    await app.runs.request({ company, trigger: 'manual' });
    const shown = async () => {
      const response = await fetchDocumented(`/api/companies/test/${company.companyId}`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      return ((await response.json()) as { authorize_url?: string }).authorize_url;
    };
    const page = await openPage(PHONE);
    await follow(page, await waitFor(shown, { what: 'authorize_url' }));
    await decide(page, 'Allow');
    expect(await title(page)).toBe('The company is connected again');
    expect(await page.locator('.company').innerText()).toContain('<img src=x');
    await expectSound(page);
    expect(await shown()).toBeUndefined();
    await mirrored(company);
  });
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
