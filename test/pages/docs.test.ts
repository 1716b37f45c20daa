import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AdminFixture, startAdmin, TOKEN } from '../api/admin-fixture.js';
import { hasBrowser, useBrowser } from './browser.js';

describe.skipIf(!hasBrowser())('/api/docs in a browser', () => {
  const openPage = useBrowser();
  let admin: AdminFixture;
  beforeAll(async () => {
    // Calls go to PUBLIC_URL: unset, it is where the page is.
    admin = await startAdmin({}, { publicUrl: new URL('http://127.0.0.1:0') });
  });
  afterAll(() => admin.stop());

  /** A page that keeps what its content policy refused, what it complained of, and which origins it asked. */
  async function openDocs(address: string, options: Parameters<typeof openPage>[0] = {}) {
    const page = await openPage(options);
    const faults: string[] = [];
    const origins = new Set<string>();
    page.on('request', (request) => void origins.add(new URL(request.url()).origin));
    page.on('pageerror', (error) => void faults.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    await page.exposeFunction('refused', (what: string) => void faults.push(what));
    await page.addInitScript(
      "document.addEventListener('securitypolicyviolation', (e) => refused(`${e.effectiveDirective} ${e.blockedURI}`))",
    );
    await page.goto(admin.url + address);
    await page.locator('.opblock').first().waitFor();
    return { page, faults, origins };
  }

  test('shows every operation', async () => {
    const { paths } = (await admin.call('GET', '/api/openapi.json')).json as { paths: Record<string, object> };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const { page, faults, origins } = await openDocs('/api/docs');
    const shown = await Promise.all(
      (await page.locator('.opblock-summary').all()).map(async (line) => {
        const method = await line.locator('.opblock-summary-method').innerText();
        return `${method} ${await line.locator('.opblock-summary-path').getAttribute('data-path')}`;
      }),
    );
    expect(shown.toSorted()).toEqual(described.toSorted());
    expect(await page.title()).toBe('Muster admin API');
    // The style sheet has come through.
    expect(await page.evaluate("getComputedStyle(document.querySelector('.opblock')).borderTopWidth")).toBe('1px');
    expect([faults, [...origins]]).toEqual([[], [admin.url]]);
  });

  test('makes a call with a token, and opens operations of every kind, within its content policy', async () => {
    const company = await admin.addCompany();
    const { page, faults, origins } = await openDocs('/api/docs');
    await page.getByRole('button', { name: 'Authorize', exact: true }).click();
    await page.locator('.modal-ux input').fill(TOKEN);
    await page.locator('.modal-ux').getByRole('button', { name: 'Apply credentials' }).click();
    await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).last().click();
    const list = page.locator('#operations-companies-listCompanies');
    await list.locator('.opblock-summary-control').click();
    await list.getByRole('button', { name: 'Try it out' }).click();
    await list.getByRole('button', { name: 'Execute' }).click();
    await list.locator('.live-responses-table').getByText(company.companyId).first().waitFor();
    for (const operation of ['onboardCompany', 'removeCompany']) {
      const block = page.locator(`#operations-companies-${operation}`);
      await block.locator('.opblock-summary-control').click();
      await block.getByRole('button', { name: 'Try it out' }).waitFor();
    }
    expect([faults, [...origins]]).toEqual([[], [admin.url]]);
  });

  test('is read on a phone of 390 or 320 pixels without scrolling sideways', async () => {
    const { page } = await openDocs('/api/docs', { viewport: { width: 390, height: 844 } });
    const tooWide = () =>
      page.evaluate<string[]>(
        `[...document.querySelectorAll('*')].filter((each) => (each.getBoundingClientRect().right > innerWidth + 1 || each.getBoundingClientRect().left + each.scrollWidth > innerWidth + 1))
          .map((each) => each.tagName + '.' + each.className).slice(-4)`,
      );
    async function expectFit(): Promise<void> {
      for (const width of [390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        expect([await page.evaluate('document.documentElement.scrollWidth'), await tooWide()]).toEqual([width, []]);
      }
    }
    await expectFit();
    for (const operation of ['companies-listCompanies', 'runs-syncCompanies', 'companies-onboardCompany']) {
      await page.locator(`#operations-${operation} .opblock-summary-control`).click();
      await page.locator(`#operations-${operation} .responses-table`).waitFor();
    }
    await expectFit();
  });
});
