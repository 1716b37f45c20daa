import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type App, startApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import type { CompanyKey } from '../../src/core/company.js';
import { createLogger } from '../../src/observability/logger.js';
import { hasBrowser, useBrowser } from '../pages/browser.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { documentedFetch } from '../support/documented-answers.js';
import { anyPort } from '../support/port.js';
import { waitFor } from '../support/wait-for.js';
import { type AuthorizationServer, EMPLOYEES, startAuthorizationServer } from './authorization-server.js';

const TOKEN = 'an-admin-token-of-tests';

describe.skipIf(!hasBrowser())("panva's oidc-provider, with rotation, PKCE and its own consent page", () => {
  const openPage = useBrowser();
  const company: CompanyKey = { environment: 'test', companyId: randomUUID() };
  const home = mkdtempSync(join(tmpdir(), 'muster-oidc-'));
  let provider: AuthorizationServer;
  let database: TestDatabase;
  let app: App;

  beforeAll(async () => {
    const port = anyPort();
    provider = await startAuthorizationServer(`http://127.0.0.1:${port}/oauth/callback`);
    database = await testDatabase();
    const config = loadConfig({
      DATABASE_URL: database.url,
      MUSTER_HOME: home,
      MUSTER_ADMIN_TOKEN: TOKEN,
      MUSTER_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
      PORT: String(port),
      TEST_BASE_URL: provider.apiUrl,
      TEST_AUTH_URL: provider.url,
      TEST_CLIENT_ID: provider.clientId,
      TEST_CLIENT_SECRET: provider.clientSecret,
      TEST_SCOPE: 'openid employees.read',
    });
    app = await startApp(config, new Set(['api', 'worker']), createLogger({ level: 'silent' }));
  });
  afterAll(async () => {
    await app?.stop();
    await provider?.stop();
    await database?.close();
    rmSync(home, { recursive: true });
  });

  const fetchDocumented = documentedFetch(() => app.url!);

  async function api<T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) };
    const response = await fetchDocumented(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return (await response.json()) as T;
  }

  const shown = () =>
    api<{ status: string; reauthorization_reason?: string; authorize_url?: string }>(
      'GET',
      `/api/companies/test/${company.companyId}`,
    );
  const newLink = async () => (await api<{ url: string }>('POST', '/api/connect-links', { environment: 'test' })).url;
  const title = (page: Page) => page.locator('h1').innerText();

  /** Signs in as the company's member; then the consent page is there, and names the scope. */
  async function signIn(link: string): Promise<Page> {
    const page = await openPage();
    await page.goto(link);
    await page.getByRole('link', { name: 'Continue' }).click();
    await page.fill('[name=login]', company.companyId);
    await page.fill('[name=password]', 'any');
    await page.getByRole('button', { name: 'Sign-in' }).click();
    await page.getByRole('button', { name: 'Continue' }).waitFor();
    expect(await page.locator('body').innerText()).toContain('employees.read');
    return page;
  }

  async function consent(link: string): Promise<string> {
    const page = await signIn(link);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(/\/oauth\/callback\?/);
    return title(page);
  }

  /** Waits for the newest run, which is asked for unless the flow did. */
  async function synced(ask: boolean): Promise<string> {
    if (ask) await app.runs.request({ company, trigger: 'manual', mode: 'full' });
    const newest = async () => (await app.runs.list({ ...company, limit: 1 })).data[0]?.status;
    await waitFor(async () => !['queued', 'running', undefined].includes(await newest()), { what: 'the run' });
    return (await newest())!;
  }

  const expire = () =>
    database.db.pool.query(
      `UPDATE muster.tokens SET expires_at = now() - interval '1 second', refreshed_at = now() - interval '30 minutes', refresh_at = now()`,
    );
  const refreshes = () => provider.tokenRequests.filter(({ grant_type }) => grant_type === 'refresh_token');

  test('a member who cancels: the page offers another try, and the operator reads why', async () => {
    const page = await signIn(await newLink());
    await page.getByRole('link', { name: 'Cancel' }).click();
    await page.waitForURL(/\/oauth\/callback\?/);
    expect(await title(page)).toBe('Access was not granted');
    expect(await page.getByRole('link', { name: 'Start again' }).count()).toBe(1);
    const entry = await database.db.prisma.auditEntry.findFirstOrThrow({ where: { action: 'company.connect' } });
    expect(entry.details).toMatchObject({ outcome: 'cancelled', error: 'access_denied', error_description: expect.any(String) });
    expect(provider.tokenRequests).toEqual([]);
  });

  test('consent, code with PKCE, onboarding and first sync', async () => {
    expect(await consent(await newLink())).toBe('The company is connected');
    expect(await synced(false)).toBe('succeeded');
    expect(await database.db.prisma.employee.count({ where: company })).toBe(EMPLOYEES);
    expect(await shown()).toMatchObject({ status: 'active' });
  });

  test('refreshes rotate: every refresh token is sent once, and each sync goes on', async () => {
    for (let n = 1; n <= 3; n++) {
      await expire();
      expect(await synced(true)).toBe('succeeded');
      expect(refreshes().length).toBeGreaterThanOrEqual(n);
    }
    const sent = refreshes().map(({ refresh_token }) => refresh_token);
    expect(new Set(sent).size).toBe(sent.length);
  });

  test('a spent refresh token that somebody uses again revokes everything, and the company must authorize again', async () => {
    const stolen = refreshes()[0]!['refresh_token']!;
    const form = { grant_type: 'refresh_token', refresh_token: stolen, client_id: provider.clientId };
    const body = new URLSearchParams({ ...form, client_secret: provider.clientSecret });
    const reuse = await fetch(`${provider.url}/auth/token`, { method: 'POST', body });
    expect([reuse.status, await reuse.json()]).toEqual([400, expect.objectContaining({ error: 'invalid_grant' })]);
    expect(await synced(true)).toBe('failed');
    expect(await shown()).toMatchObject({ status: 'reauthorization_required', reauthorization_reason: 'token_refused' });
  });

  test('it authorizes again at the address that is shown, and is synced', async () => {
    const { authorize_url } = await shown();
    expect(await consent(authorize_url!)).toBe('The company is connected again');
    expect(await synced(false)).toBe('succeeded');
    expect(await shown()).toMatchObject({ status: 'active' });
  });
});
