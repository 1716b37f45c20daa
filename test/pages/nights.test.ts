import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HANGS_MS } from '../support/wait-for.js';
import { hasBrowser, useBrowser } from './browser.js';
import { COMPANIES, type Deployment, deploy, signIn, watch } from './deployment.js';
import { addPastNights } from './past-nights.js';

/** Unless told otherwise, vitest polls for a second. */
const PATIENT = { timeout: HANGS_MS };

describe.skipIf(!hasBrowser())('the nights of the overview', () => {
  const openPage = useBrowser();
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy();
    await addPastNights(deployment);
  });
  afterAll(() => deployment?.stop());

  const calendar = (page: Page) => page.getByRole('group', { name: 'The last 30 nights' });

  test.each([
    { javaScriptEnabled: true, viewport: { width: 1280, height: 900 } },
    { javaScriptEnabled: false, viewport: { width: 390, height: 844 } },
  ])('a cell is reached by its words and leads to the runs of its night: %o', async (options) => {
    const page = await openPage(options);
    const watched = watch(page, deployment.url);
    await signIn(page, deployment.url);
    await expect.poll(() => calendar(page).getByRole('link').count(), PATIENT).toBe(30);
    const failed = calendar(page)
      .getByRole('link', { name: /4 failed/ })
      .last();
    await failed.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await expect.poll(() => page.locator('tbody tr').count(), PATIENT).toBe(COMPANIES.length);
    expect(await page.getByText('Failed', { exact: true }).count()).toBe(4 + 1); // runs, and the word in the filter
    await page.getByRole('link', { name: 'At any time' }).click();
    await expect.poll(() => page.locator('tbody tr').count(), PATIENT).toBe(50);
    expect([watched.faults, [...watched.strangers]]).toEqual([[], []]);
  });

  test('what a person has opened stays open when the overview renews itself', async () => {
    const page = await openPage();
    await page.clock.install();
    await signIn(page, deployment.url);
    await page.getByText('The nights as a table').click();
    const table = page.getByRole('table', { name: 'The last nights, newest first' });
    await table.waitFor();
    const { companyId } = COMPANIES[4]!;
    const refresh_token = deployment.sandbox.issueRefreshToken(companyId).reveal();
    await deployment.call('POST', '/api/companies', { environment: 'test', company_id: companyId, refresh_token });
    await expect
      .poll(
        async () => {
          await page.clock.fastForward(16_000);
          return page.getByRole('link', { name: '1 active companies' }).count();
        },
        { ...PATIENT, interval: 500 },
      )
      .toBe(1);
    expect(await table.isVisible()).toBe(true);
  });
});
