import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { useBrowser } from './browser.js';
import { type Deployment, deploy, signIn } from './deployment.js';
import { fill } from './filled-pages.js';

// No test, but what `npm run screenshots` makes: every page, light and dark, wide and on a phone. They are for a person to look at.

const FOLDER = process.env.SCREENSHOTS!;
const LOOKS = (['light', 'dark'] as const).flatMap((colorScheme) => [
  { name: `${colorScheme}-wide`, colorScheme, viewport: { width: 1280, height: 860 } },
  { name: `${colorScheme}-phone`, colorScheme, viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
]);

const openPage = useBrowser();
let deployment: Deployment;
let pages: Awaited<ReturnType<typeof fill>>;
beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  deployment = await deploy();
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
