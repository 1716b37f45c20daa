import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { type App, startApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { createLogger } from '../../src/observability/logger.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { Receiver } from '../notifications/receiver.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

const TOKEN = 'an-admin-token-of-tests';

const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
export const COMPANIES = [
  { companyId: id(1), name: 'Brattskjær Båtbyggeri AS', employees: 3_000 },
  { companyId: id(2), name: 'Havgløtt Sjømat AS', employees: 3_000 },
  { companyId: id(3), name: 'Ekdal Regnskap', employees: 60 },
  { companyId: id(4), name: 'Nordlia Helse og Omsorg', employees: 60 },
  { companyId: id(5), name: `<img src=x onerror="document.title='pwned'"> & Sønner`, employees: 5 },
];

export interface Deployment {
  readonly app: App;
  readonly url: string;
  readonly sandbox: Sandbox;
  readonly database: TestDatabase;
  /** The webhook. */
  readonly receiver: Receiver;
  call(method: string, path: string, body?: object): Promise<unknown>;
  stop(): Promise<void>;
}

/** Muster with api and worker, and a service that takes `latencyMs` for each answer. */
export async function deploy({ latencyMs = 20 }: { readonly latencyMs?: number } = {}): Promise<Deployment> {
  const port = await freePort();
  const sandbox = await startSandbox({
    companies: COMPANIES,
    redirectUris: [`http://127.0.0.1:${port}/oauth/callback`],
    maxTake: 100,
    latencyMs,
  });
  const home = mkdtempSync(join(tmpdir(), 'muster-pages-'));
  const database = await testDatabase();
  const receiver = await Receiver.start();
  const config = loadConfig({
    TEST_BASE_URL: sandbox.url.href,
    TEST_AUTH_URL: sandbox.url.href,
    TEST_CLIENT_ID: sandbox.clientId,
    TEST_CLIENT_SECRET: sandbox.clientSecret.reveal(),
    DATABASE_URL: database.url,
    MUSTER_HOME: home,
    MUSTER_ADMIN_TOKEN: TOKEN,
    MUSTER_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    PORT: String(port),
    // Nobody signs in there: the page for signing in offers it.
    OIDC_ISSUER: 'https://login.example.com/realms/staff',
    OIDC_CLIENT_ID: 'muster',
    OIDC_CLIENT_SECRET: 'a-secret-of-tests',
    OIDC_VIEWERS: 'staff',
    NOTIFY_WEBHOOK_URL: receiver.url.href,
    NOTIFY_WEBHOOK_SECRET: 'a-signing-secret-of-tests',
  });
  const app = await startApp(config, new Set(['api', 'worker']), createLogger({ level: 'silent' }));
  return {
    app,
    url: app.url!,
    sandbox,
    database,
    receiver,
    async call(method, path, body) {
      const response = await fetch(app.url + path, {
        method,
        headers: { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
      return response.status === 204 ? undefined : response.json();
    },
    async stop() {
      await app.stop();
      await sandbox.stop();
      await receiver.goDown();
      await database.close();
      rmSync(home, { recursive: true });
    },
  };
}

export async function signIn(page: Page, url: string, token = TOKEN): Promise<void> {
  await page.goto(url);
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
}

/** What a browser complains of, and whom it asks. Both are to stay empty. */
export function watch(page: Page, url: string): { readonly faults: string[]; readonly strangers: Set<string> } {
  const faults: string[] = [];
  const strangers = new Set<string>();
  page.on('pageerror', (error) => void faults.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' || /Content Security Policy/.test(message.text())) faults.push(message.text());
  });
  page.on('request', (request) => {
    const { origin } = new URL(request.url());
    if (origin !== url) strangers.add(origin);
  });
  return { faults, strangers };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
