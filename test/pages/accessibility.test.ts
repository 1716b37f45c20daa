import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasBrowser, useBrowser } from './browser.js';
import { type Deployment, deploy, signIn } from './deployment.js';
import { fill } from './filled-pages.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe.skipIf(!hasBrowser())('every page', () => {
  const openPage = useBrowser();
  let deployment: Deployment;
  let pages: Awaited<ReturnType<typeof fill>>;
  beforeAll(async () => {
    deployment = await deploy();
    pages = await fill(deployment);
  });
  afterAll(() => deployment?.stop());

  /** What axe finds, as a line each. */
  async function faultsOf(page: Page): Promise<string[]> {
    // Through the debugger, since the policy of the page lets no script of ours in.
    await page.evaluate(AXE);
    return page.evaluate(
      `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ' ' + failureSummary)))`,
    );
  }

  test.each([
    { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
    { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
  ] as const)('is without a fault to axe, and not wider than the window: %o', async (options) => {
    const page = await openPage(options);
    for (const path of ['/login', '/login?left', '/login?next=/%3Fundone%3Dcompany.pause', '/login/callback']) {
      await page.goto(deployment.url + path);
      expect([path, await faultsOf(page)]).toEqual([path, []]);
    }
    await signIn(page, deployment.url);
    for (const { name, path, prepare, press } of pages) {
      await prepare?.();
      await page.goto(deployment.url + path);
      await press?.(page);
      expect([name, await faultsOf(page)]).toEqual([name, []]);
      const [whole, seen] = await page.evaluate<[number, number]>('[document.documentElement.scrollWidth, window.innerWidth]');
      expect([name, whole <= seen]).toEqual([name, true]);
      expect(await page.title()).not.toBe('pwned');
    }
  });
});
