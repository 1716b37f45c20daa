import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { HANGS_MS } from '../support/wait-for.js';

/** Where Debian and Ubuntu install it; CHROMIUM names another. */
const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium';
const ARGUMENTS = [
  '--no-sandbox',
  '--headless',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Opens a page with nothing in it of the pages before: no cookie, no cache. */
type OpenPage = (options?: BrowserContextOptions) => Promise<Page>;

/** Whether there is a browser: `describe.skipIf(!hasBrowser())`. Where there is none the run says so, and in CI it fails. */
export function hasBrowser(): boolean {
  if (existsSync(EXECUTABLE)) return true;
  if (process.env.CI) throw new Error(`CI runs the tests in a browser: install chromium (${EXECUTABLE}), or set CHROMIUM`);
  console.warn(
    `\nThe tests in a browser did NOT run: there is no ${EXECUTABLE}.\nInstall it (apt install chromium), or set CHROMIUM.\n`,
  );
  return false;
}

/** A browser for the tests around the call, from their beginning to their end. */
export function useBrowser(): OpenPage {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: EXECUTABLE, args: ARGUMENTS, timeout: HANGS_MS });
  });
  afterAll(() => browser?.close());
  return async (options) => {
    const context = await browser.newContext(options);
    // Playwright's own limit is one that a busy machine exceeds.
    context.setDefaultTimeout(HANGS_MS);
    return context.newPage();
  };
}
