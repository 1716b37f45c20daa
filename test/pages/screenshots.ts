import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { useBrowser } from './browser.js';
import { type Deployment, deploy, signIn } from './deployment.js';
import { fill } from './filled-pages.js';

// No test, but what `npm run screenshots` makes: every page, light and dark, wide and on a phone, for a person to look at, and the pictures of the docs.

const FOLDER = process.env.SCREENSHOTS!;
const OF_DOCS = fileURLToPath(new URL('../../docs/images', import.meta.url));
/** Pages of the docs: the first screen of each. */
const IN_DOCS = ['overview', 'company-blocked', 'run-failed', 'hold', 'record', 'certificate'];
const LOOKS = (['light', 'dark'] as const).flatMap((colorScheme) => [
  { name: `${colorScheme}-wide`, colorScheme, viewport: { width: 1280, height: 860 } },
  { name: `${colorScheme}-phone`, colorScheme, viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
]);

const openPage = useBrowser();
let deployment: Deployment;
let pages: Awaited<ReturnType<typeof fill>>;
beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  // A run on a picture has a time left.
  deployment = await deploy({ latencyMs: 150 });
  pages = await fill(deployment);
});
afterAll(() => deployment?.stop());

test.each(LOOKS)('$name', async ({ name: look, ...options }) => {
  const page = await openPage(options);
  const save = (name: string) => page.screenshot({ path: join(FOLDER, `${name}-${look}.png`), fullPage: true });
  await page.goto(`${deployment.url}/login`);
  await save('login');
  await signIn(page, deployment.url);
  for (const { name, path, prepare, press } of pages) {
    await prepare?.();
    await page.goto(deployment.url + path);
    await press?.(page);
    expect((await save(name)).length).toBeGreaterThan(0);
    if (name !== 'company-running') continue;
    await page.getByRole('link', { name: 'Watch the run' }).click();
    await page.locator('[data-rate]:not(:empty)').first().waitFor();
    expect((await save('run-live')).length).toBeGreaterThan(0);
  }
});

test('the pictures of the docs', async () => {
  const page = await openPage({ viewport: { width: 1440, height: 900 } });
  await signIn(page, deployment.url);
  for (const { name, path, prepare, press } of pages.filter((each) => IN_DOCS.includes(each.name))) {
    await prepare?.();
    await page.goto(deployment.url + path);
    await press?.(page);
    expect((await page.screenshot({ path: join(OF_DOCS, `${name}.png`) })).length).toBeGreaterThan(0);
  }
});
