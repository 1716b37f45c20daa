import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type App, startApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { beginFlow } from '../../src/dashboard/sign-in/sign-in-flow.js';
import { createLogger } from '../../src/observability/logger.js';
import { hasBrowser, useBrowser } from '../pages/browser.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { anyPort } from '../support/port.js';
import { PlainBrowser } from './plain-browser.js';
import { type SignInProvider, type STAFF, startSignInProvider } from './sign-in-provider.js';

const TOKEN = 'an-admin-token-of-tests';
const COMPANY = { environment: 'test', companyId: randomUUID() } as const;
const home = mkdtempSync(join(tmpdir(), 'muster-sign-in-'));
const port = anyPort();
const url = `http://127.0.0.1:${port}`;
const lines: string[] = [];
let provider: SignInProvider;
let database: TestDatabase;
let app: App;
let env: Record<string, string>;

const start = (more: Record<string, string> = {}) =>
  startApp(
    loadConfig({ ...env, ...more }),
    new Set(['api']),
    createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } }),
  );

beforeAll(async () => {
  provider = await startSignInProvider(`${url}/login/callback`);
  database = await testDatabase();
  env = {
    DATABASE_URL: database.url,
    MUSTER_HOME: home,
    MUSTER_ADMIN_TOKEN: TOKEN,
    MUSTER_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    PORT: String(port),
    OIDC_ISSUER: provider.url,
    OIDC_CLIENT_ID: provider.clientId,
    OIDC_CLIENT_SECRET: provider.clientSecret,
    OIDC_ADMINS: 'muster-admins',
    OIDC_OPERATORS: 'muster-operators, on-call',
    OIDC_VIEWERS: 'muster-viewers',
  };
  app = await start();
  await database.db.prisma.connection.create({ data: { ...COMPANY, token: { create: { refreshToken: 'encrypted' } } } });
  await database.db.prisma.company.create({ data: { ...COMPANY, name: 'Havgløtt AS' } });
});
afterAll(async () => {
  await app?.stop();
  await provider?.stop();
  await database?.close();
  rmSync(home, { recursive: true });
});
beforeEach(() => database.db.prisma.session.deleteMany());
afterEach(() => {
  Object.assign(provider, { lie: undefined, lieOfUser: undefined, signature: 'right' });
});

const host = () => new URL(provider.url).host;
const isCallback = (address: string) => address.startsWith(`${url}/login/callback`);
const never = () => false;
const signIn = (browser: PlainBrowser, login: string, next = '') => browser.signInThere(login, `${url}/login/oidc${next}`, never);
/** As far as the address to which the provider sends the person back. */
const halfway = async (browser: PlainBrowser, login: string) =>
  (await browser.signInThere(login, `${url}/login/oidc`, isCallback)).url;
const titleOf = ({ html }: { html: string }) => /<h1[^>]*>([^<]*)/.exec(html)?.[1];
const sessions = () => database.db.prisma.session.findMany({ select: { name: true, role: true } });

describe('the role comes from the claim', () => {
  test.each([
    ['anna', 'admin'],
    ['olav', 'operator'],
    ['vera', 'viewer'],
    ['admin', 'viewer'],
  ])('%s becomes %s', async (login, role) => {
    const { status, html, url: at } = await signIn(new PlainBrowser(), login);
    expect([status, at]).toEqual([200, `${url}/`]);
    expect(html).toContain(`${login} (OIDC) <small>${role}</small>`);
    expect(await sessions()).toEqual([{ name: `${login} (OIDC)`, role }]);
  });

  test('whoever has no group of ours is told so, whom to ask and with what, and is not signed in', async () => {
    const { status, html } = await signIn(new PlainBrowser(), 'nils');
    expect([status, titleOf({ html })]).toEqual([403, 'You have no role here']);
    for (const text of ['nils (OIDC)', 'groups', 'canteen', 'Ask an operator']) expect(html).toContain(text);
    expect(await sessions()).toEqual([]);
  });

  test('an ID token that says all is enough, and it counts before the user info', async () => {
    provider.lie = (claims) => ({ ...claims, groups: 'muster-admins', preferred_username: 'Vera V.' });
    await signIn(new PlainBrowser(), 'vera');
    expect(await sessions()).toEqual([{ name: 'Vera V. (OIDC)', role: 'admin' }]);
  });

  test('the audit has the person: who they are at the issuer, and what they did', async () => {
    const browser = new PlainBrowser();
    await signIn(browser, 'olav');
    const path = `/companies/test/${COMPANY.companyId}`;
    const { html } = await browser.open(url + path);
    const csrf = /name="csrf" value="([^"]+)"/.exec(html)![1]!;
    const { environment, companyId } = COMPANY;
    await browser.open(`${url}/act/company.pause`, { form: { csrf, environment, company_id: companyId, back: path } });
    const entries = await database.db.prisma.auditEntry.findMany({
      where: { actor: 'olav (OIDC)' },
      orderBy: { id: 'desc' },
      take: 2,
    });
    expect(entries).toMatchObject([
      { action: 'company.pause', role: 'operator', companyId, details: { outcome: 'done' } },
      {
        action: 'session.begin',
        role: 'operator',
        details: { issuer: `${provider.url}/`, subject: 'olav', outcome: 'done' },
      },
    ]);
    const refused = await browser.open(`${url}/act/company.remove`, { form: { csrf, environment, company_id: companyId } });
    expect(refused.status).toBe(403);
    expect(await database.db.prisma.connection.count()).toBe(1);
  });
});

describe('sessions', () => {
  test('the person comes to the page that they asked for, and to ours alone', async () => {
    expect((await signIn(new PlainBrowser(), 'vera', '?next=/runs%3Fstatus=failed')).url).toBe(`${url}/runs?status=failed`);
    expect((await signIn(new PlainBrowser(), 'vera', '?next=//elsewhere.example')).url).toBe(`${url}/`);
  });

  test('a key that was there before is worth nothing afterwards', async () => {
    const browser = new PlainBrowser();
    await browser.open(`${url}/login`, { form: { token: TOKEN } });
    expect(await sessions()).toHaveLength(1);
    await signIn(browser, 'vera');
    expect(await sessions()).toEqual([{ name: 'vera (OIDC)', role: 'viewer' }]);
  });

  test('they end after eight hours, and at once where other settings say who has which role', async () => {
    const browser = new PlainBrowser();
    await signIn(browser, 'vera');
    const lasts = await database.db.pool.query(
      'SELECT extract(epoch FROM ends_at - created_at)::int AS seconds FROM muster.sessions',
    );
    expect(lasts.rows).toEqual([{ seconds: 8 * 3_600 }]);
    const otherPort = anyPort();
    const other = await start({ PORT: String(otherPort), OIDC_VIEWERS: 'somebody-else', PUBLIC_URL: url });
    browser.cookies.set(`127.0.0.1:${otherPort}`, browser.cookies.get(`127.0.0.1:${port}`)!);
    expect((await browser.open(`http://127.0.0.1:${otherPort}/runs`)).url).toContain('/login?next');
    await other.stop();
    expect((await browser.open(`${url}/runs`)).url).toBe(`${url}/runs`);
  });
});

describe('nobody is signed in', () => {
  afterEach(async () => {
    const somebody = await sessions();
    if (somebody.length > 0) throw new Error(`Somebody was signed in: ${JSON.stringify(somebody)}`);
  });

  test.each([
    ['a wrong state', (back: URL) => back.searchParams.set('state', 'x'.repeat(43))],
    ['no state', (back: URL) => back.searchParams.delete('state')],
    ['two states', (back: URL) => back.searchParams.append('state', 'another')],
  ])('%s: the code is not even brought to the provider', async (_, change) => {
    const browser = new PlainBrowser();
    const back = new URL(await halfway(browser, 'anna'));
    change(back);
    const before = provider.exchanges;
    const page = await browser.open(back.href);
    expect(page.status).toBe(403);
    expect(['This sign-in did not begin here', 'The answer cannot be trusted']).toContain(titleOf(page));
    expect(page.html).toContain(`href="${url}/login/oidc"`);
    expect(provider.exchanges).toBe(before);
  });

  test.each(['in a browser that began nothing', 'in a browser that has begun one of its own'])(
    'the address that another person was sent back to, opened %s',
    async (where) => {
      const back = await halfway(new PlainBrowser(), 'anna');
      const victim = new PlainBrowser();
      if (where.endsWith('own')) await halfway(victim, 'vera');
      const before = provider.exchanges;
      const page = await victim.open(back);
      expect([page.status, titleOf(page), provider.exchanges]).toEqual([403, 'This sign-in did not begin here', before]);
    },
  );

  test('a flow that took too long, and one whose time was changed', async () => {
    const old = beginFlow('/', Date.now() - 11 * 60_000);
    const open = (text: string) => {
      const browser = new PlainBrowser();
      browser.cookies.set(`127.0.0.1:${port}`, new Map([['muster_sign_in', text]]));
      return browser.open(`${url}/login/callback?code=any&state=${old.state}`);
    };
    const before = provider.exchanges;
    expect(titleOf(await open(old.text))).toBe('Signing in took too long');
    expect(titleOf(await open(old.text.replace(/^\d+/, String(Date.now()))))).toBe('This sign-in did not begin here');
    expect(provider.exchanges).toBe(before);
  });

  test.each<[string, Partial<Pick<SignInProvider, 'lie' | 'signature' | 'lieOfUser'>>]>([
    ['another nonce', { lie: (claims) => ({ ...claims, nonce: 'another' }) }],
    ['no nonce', { lie: (claims) => ({ ...claims, nonce: undefined }) }],
    ['another audience', { lie: (claims) => ({ ...claims, aud: 'another-client' }) }],
    [
      'another audience beside ours, and no party named',
      { lie: (claims) => ({ ...claims, aud: [claims.aud, 'another-client'] }) },
    ],
    ['another issuer', { lie: (claims) => ({ ...claims, iss: 'https://elsewhere.example' }) }],
    ['a time that is over', { lie: (claims) => ({ ...claims, exp: 1_000_000_000 }) }],
    ['no subject', { lie: (claims) => ({ ...claims, sub: undefined }) }],
    ['the signature of another key', { signature: 'of another key' }],
    ['no signature', { signature: 'none' }],
    ['the user info of another person', { lieOfUser: (claims) => ({ ...claims, sub: 'anna' }) }],
  ])('an answer with %s', async (_, lie) => {
    Object.assign(provider, lie);
    const page = await signIn(new PlainBrowser(), 'vera');
    expect([page.status, titleOf(page)]).toEqual([403, 'The answer cannot be trusted']);
    expect(page.html).toContain('/login/oidc');
  });

  test('a person who cancels at the provider', async () => {
    const browser = new PlainBrowser();
    const { html } = await browser.open(`${url}/login/oidc`);
    const page = await browser.open(new URL(/href="([^"]*abort)"/.exec(html)![1]!, provider.url).href);
    expect([page.status, titleOf(page)]).toEqual([403, 'Signing in was cancelled']);
    expect(page.html).toContain('<code>access_denied</code>');
  });

  test('a wrong client secret: the page says which settings to look at', async () => {
    await app.stop();
    app = await start({ OIDC_CLIENT_SECRET: 'a-wrong-one' });
    const page = await signIn(new PlainBrowser(), 'anna');
    expect([page.status, titleOf(page)]).toEqual([502, 'Muster is not known there']);
    expect(page.html).toContain('OIDC_CLIENT_SECRET');
    await app.stop();
    app = await start();
  });
});

test('a code that was used already signs nobody in a second time, whoever has caught all that the browser had', async () => {
  const browser = new PlainBrowser();
  const back = await halfway(browser, 'vera');
  const jar = browser.cookies.get(`127.0.0.1:${port}`)!;
  const kept = new Map(jar);
  expect((await browser.open(back)).url).toBe(`${url}/`);
  expect([...jar.keys()]).toEqual(['muster_session']);
  expect(titleOf(await browser.open(back))).toBe('This sign-in did not begin here');
  const thief = new PlainBrowser();
  thief.cookies.set(`127.0.0.1:${port}`, kept);
  const page = await thief.open(back);
  expect([page.status, titleOf(page)]).toEqual([403, 'This sign-in was already used']);
  expect(await sessions()).toHaveLength(1);
});

test('nothing secret is in the log or in the database', async () => {
  const browser = new PlainBrowser();
  const back = new URL(await halfway(browser, 'anna'));
  const flow = browser.cookies.get(`127.0.0.1:${port}`)!.get('muster_sign_in')!;
  await browser.open(back.href);
  provider.signature = 'of another key';
  await signIn(new PlainBrowser(), 'vera');
  const stored = JSON.stringify([
    await database.db.prisma.session.findMany(),
    (await database.db.prisma.auditEntry.findMany()).map(({ details }) => details),
  ]);
  const [log, verifier] = [lines.join(''), flow];
  const secrets = [
    ...provider.secrets,
    verifier,
    back.searchParams.get('state')!,
    browser.cookies.get(`127.0.0.1:${port}`)!.get('muster_session')!,
  ];
  expect(secrets.length).toBeGreaterThan(8);
  for (const secret of secrets) expect([log.includes(secret), stored.includes(secret)]).toEqual([false, false]);
  expect(log).toContain('untrusted');
  expect(log).not.toContain('/login/callback?');
});

const PAGES = [
  '/',
  '/companies',
  `/companies/test/${COMPANY.companyId}`,
  '/runs',
  '/holds',
  '/notifications',
  '/queue',
  '/tokens',
];

describe.skipIf(!hasBrowser())('in Chromium', () => {
  const openPage = useBrowser();

  /** From the link on the page for signing in, over the provider's own pages, and back. */
  async function signInAs(login: keyof typeof STAFF, page: Page): Promise<void> {
    await page.goto(`${url}/companies`);
    await page.getByRole('link', { name: `Sign in with ${host()}` }).click();
    await page.fill('[name=login]', login);
    await page.fill('[name=password]', 'any');
    await page.getByRole('button', { name: 'Sign-in' }).click();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { level: 1, name: 'Companies' }).waitFor();
  }

  test.each([true, false])(
    'a person signs in, sees what their role may do, acts, and leaves; with scripts: %s',
    async (javaScriptEnabled) => {
      const faults: string[] = [];
      for (const [login, role] of [
        ['anna', 'admin'],
        ['olav', 'operator'],
        ['vera', 'viewer'],
      ] as const) {
        const page = await openPage({ javaScriptEnabled });
        page.on('console', (message) => {
          // The provider's own pages ask for fonts of another host, in vain.
          if (message.type() === 'error' && page.url().startsWith(url)) faults.push(message.text());
        });
        await signInAs(login, page);
        expect((await page.locator('.who').innerText()).split('\n')).toEqual([`${login} (OIDC)`, role, 'Sign out']);
        const buttons = new Set<string>();
        for (const path of PAGES) {
          await page.goto(url + path);
          for (const name of await page.getByRole('button').allInnerTexts()) buttons.add(name);
        }
        const has = (name: string) => buttons.has(name);
        expect([has('Sync now') || has('Resume'), has('Make the token')]).toEqual([role !== 'viewer', role === 'admin']);
        if (role === 'viewer') expect([...buttons].filter((name) => !['Sign out', 'Show', 'Copy'].includes(name))).toEqual([]);
        if (role !== 'viewer') {
          await page.goto(`${url}/companies/test/${COMPANY.companyId}`);
          await page.getByRole('button', { name: /^(Pause|Resume)$/ }).click();
          await page.getByRole('status').waitFor();
          await page.goto(`${url}/audit`);
          const row = page.getByRole('row').filter({ hasText: /company\.(pause|resume)/ });
          expect(await row.first().innerText()).toContain(`${login} (OIDC)`);
        }
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByText('You are signed out of Muster').waitFor();
        await page.getByRole('link', { name: `sign out of ${host()}` }).click();
        await page.waitForURL((address) => address.host === host());
        await page.goto(`${url}/companies`);
        expect(new URL(page.url()).pathname).toBe('/login');
        await page.getByLabel('Access token').waitFor();
        await page.getByRole('button', { name: 'Sign in' }).waitFor();
      }
      expect(faults).toEqual([]);
    },
  );

  test('an address that was caught elsewhere signs nobody in, and the page leads on', async () => {
    const back = await halfway(new PlainBrowser(), 'anna');
    const page = await openPage();
    await page.goto(back);
    expect(await page.locator('h1').innerText()).toBe('This sign-in did not begin here');
    await page.getByRole('link', { name: 'Sign in with a token' }).click();
    await page.getByLabel('Access token').fill(TOKEN);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  });

  test('another site that leads to the beginning is held up by the page for signing in', async () => {
    const page = await openPage();
    await page.goto(`${provider.url}/nothing-here`);
    await page.evaluate((address) => void (location.href = address), `${url.replace('127.0.0.1', 'localhost')}/login/oidc`);
    await page.getByLabel('Access token').waitFor();
    expect(new URL(page.url()).pathname).toBe('/login');
  });
});
