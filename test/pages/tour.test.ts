import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HANGS_MS } from '../support/wait-for.js';
import { hasBrowser, useBrowser } from './browser.js';
import { COMPANIES, type Deployment, deploy, signIn, watch } from './deployment.js';

// Each step as a person does it: by what is written on the page. With scripts a run is watched without a touch; without, by looking again.

const PHONE = { width: 390, height: 844 };
const WIDE = { width: 1280, height: 900 };
const MODES = [
  { mode: 'with scripts', javaScriptEnabled: true, viewport: WIDE, large: COMPANIES[0]!, small: COMPANIES[2]! },
  { mode: 'without scripts, on a phone', javaScriptEnabled: false, viewport: PHONE, large: COMPANIES[1]!, small: COMPANIES[3]! },
];

describe.skipIf(!hasBrowser())('the control room', () => {
  const openPage = useBrowser();
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy();
  });
  afterAll(() => deployment?.stop());

  describe.each(MODES)('$mode', ({ javaScriptEnabled, viewport, large, small }) => {
    let page: Page;
    let watched: ReturnType<typeof watch>;
    /** Until all of the page that it leads to is there. */
    const click = async (what: Locator) => {
      await what.click();
      await page.waitForLoadState();
    };
    const press = (name: string) => click(page.getByRole('button', { name, exact: true }));
    const follow = (name: string | RegExp) => click(page.getByRole('link', { name }).first());
    const heading = () => page.getByRole('heading', { level: 1 }).innerText();
    const goTo = (name: string) =>
      click(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }));
    const openCompany = async (name: string) => {
      await goTo('Companies');
      await click(page.getByRole('link', { name, exact: true }));
      expect(await heading()).toBe(name);
    };

    /** Until the page says it: with scripts by itself, without by looking again. */
    async function waitFor(isThere: () => Promise<boolean>): Promise<void> {
      for (const deadline = performance.now() + HANGS_MS; performance.now() < deadline; ) {
        if (await isThere()) return;
        await page.waitForTimeout(200);
        if (!javaScriptEnabled) await page.reload();
      }
      throw new Error(`The page never said so:\n${await page.locator('main').innerText()}`);
    }
    const says = (text: string | RegExp) => async () => (await page.locator('main').getByText(text).count()) > 0;

    beforeAll(async () => {
      page = await openPage({ javaScriptEnabled, viewport });
      watched = watch(page, deployment.url);
    });

    test('is entered with a token', async () => {
      await page.goto(`${deployment.url}/runs`);
      expect(new URL(page.url()).pathname).toBe('/login');
      await page.getByLabel('Access token').fill('a wrong one');
      await press('Sign in');
      expect(await page.getByRole('alert').innerText()).toContain('unknown or has expired');
      // A refused form is a failed load to the browser's console.
      watched.faults.length = 0;
      await signIn(page, deployment.url);
    });

    test('connects a company, and watches its first run to the end', async () => {
      await goTo('Companies');
      await follow('Connect a company');
      await page.getByLabel('Environment').selectOption('test');
      await press('Make a link');
      const link = await page.getByLabel('Link', { exact: true }).inputValue();
      await page.goto(link);
      await follow('Continue');
      await page.getByLabel('Company').selectOption(large.companyId);
      // However long a person takes to come to the run.
      deployment.sandbox.faults.add({ kind: 'delay', ms: 1_500 }, { path: '/employees', times: Infinity });
      await press('Allow');
      expect(await heading()).toBe('The company is connected');
      await page.goto(deployment.url);
      await openCompanyById(large.companyId);
      await follow('Watch the run');
      await waitFor(says('Running'));
      // Everything below changes without a touch.
      if (javaScriptEnabled) await waitFor(async () => (await page.locator('[data-time-left]').count()) > 0);
      deployment.sandbox.faults.clear();
      const before = page.url();
      await waitFor(says('Succeeded'));
      await waitFor(async () => (await page.locator('.proof.good').count()) > 0);
      expect(page.url()).toBe(before);
      expect(await heading()).toBe(`Run of ${large.name}`);
      expect(await page.locator('[data-walk=employees] [data-count=received]').innerText()).toBe('3,000');
      await openCompany(large.name);
    });

    async function openCompanyById(companyId: string): Promise<void> {
      await page.goto(`${deployment.url}/companies/test/${companyId}`);
    }

    test('pauses, resumes, syncs and cancels', async () => {
      await press('Pause');
      expect(await page.getByRole('status').innerText()).toContain('The company is paused');
      expect(await page.getByRole('button', { name: 'Sync now' }).count()).toBe(0);
      await press('Resume');
      // However long a person takes to cancel it.
      deployment.sandbox.faults.add({ kind: 'delay', ms: 1_500 }, { path: '/employees', times: Infinity });
      await press('Full resync');
      await follow('Watch the run');
      await waitFor(says('Running'));
      await press('Cancel');
      // The state, and not the notice that it is being cancelled: while the run goes on, another sync would be the same run.
      await waitFor(says(/^Cancelled$/));
      deployment.sandbox.faults.clear();
      await openCompany(large.name);
      await press('Sync now');
      // Above the one that was cancelled; it may have ended by now, and then there is nothing to watch.
      const newest = page.getByRole('table', { name: 'The newest runs of this company' }).locator('tbody tr').first();
      await waitFor(async () => !(await newest.innerText()).includes('Cancelled'));
      await newest.getByRole('link').click();
      await waitFor(says('Succeeded'));
    });

    test('finds the company that must authorize, and repairs it', async () => {
      const { companyId, name } = small;
      const refresh_token = deployment.sandbox.issueRefreshToken(companyId).reveal();
      await deployment.call('POST', '/api/companies', { environment: 'test', company_id: companyId, refresh_token });
      await openCompanyById(companyId);
      await waitFor(async () => (await page.getByText('Watch the run').count()) === 0 || !(await page.reload()));
      deployment.sandbox.revoke(companyId);
      await openCompanyById(companyId);
      await press('Sync now');
      await goTo('Companies');
      await page.getByLabel('Status').selectOption('reauthorization_required');
      if (!javaScriptEnabled) await press('Show');
      await page.waitForURL(/[?&]status=reauthorization_required/);
      await waitFor(async () => {
        if (javaScriptEnabled) await page.reload();
        return (await page.getByRole('link', { name, exact: true }).count()) > 0;
      });
      expect(new URL(page.url()).searchParams.get('status')).toBe('reauthorization_required');
      await page.getByRole('link', { name, exact: true }).click();
      expect(await page.getByRole('heading', { level: 2 }).first().innerText()).toBe('This company must authorize again');
      await page.goto(await page.getByLabel('Link for the company’s administrator').inputValue());
      await follow('Continue');
      await press('Allow');
      expect(await heading()).toBe('The company is connected again');
      await openCompanyById(companyId);
      expect(await page.getByRole('heading', { name: 'This company must authorize again' }).count()).toBe(0);
    });

    /** Of a company so small that its run would be over before anybody has found it. */
    async function resync(): Promise<void> {
      deployment.sandbox.faults.add({ kind: 'hold' }, { path: '/employees', times: Infinity });
      await press('Full resync');
      await follow('Watch the run');
      deployment.sandbox.faults.clear();
      await waitFor(says('Succeeded'));
    }

    test('decides on a hold', async () => {
      const { companyId, name } = small;
      const list = deployment.sandbox.list(companyId, 'employees');
      await openCompanyById(companyId);
      await waitFor(async () => (await page.getByText('Watch the run').count()) === 0 || !(await page.reload()));
      list.remove(0, list.size - 5);
      await resync();
      await goTo('Holds');
      expect(await page.locator('main').innerText()).toContain(companyId);
      expect(await page.getByRole('heading', { level: 2 }).first().innerText()).toContain(
        'of 60 rows of employees would be deleted',
      );
      await press('Reject');
      expect(await page.locator('main').innerText()).toContain('Nothing waits for a decision.');
      await openCompany(name);
      await resync();
      await goTo('Holds');
      await page.getByLabel('Why').fill('The company has left them.');
      await press('Approve');
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Delete 55 of 60 rows of employees?');
      expect(await page.getByLabel('Why').inputValue()).toBe('The company has left them.');
      expect(await page.getByRole('table').getByRole('row').count()).toBe(51);
      await press('Approve');
      expect(await page.locator('main').innerText()).toContain('Nothing waits for a decision.');
      expect(await deployment.database.db.prisma.employee.count({ where: { companyId, deletedAt: null } })).toBe(5);
    });

    test('syncs a selection again', async () => {
      await goTo('Companies');
      await page.getByLabel(`Select ${small.name}`).check();
      await press('Sync selected');
      expect(await page.getByRole('status').innerText()).toBe('Done for 1 of 1 selected companies.');
      await follow('Back to the companies');
    });

    test('gives somebody a token who can change nothing with it', async () => {
      await goTo('Tokens');
      const name = `onlooker ${javaScriptEnabled}`;
      await page.getByLabel('Name').fill(name);
      await page.getByLabel('Role').selectOption('viewer');
      await press('Make the token');
      const token = await page.getByLabel('Token', { exact: true }).inputValue();
      const viewer = await openPage({ javaScriptEnabled, viewport });
      await signIn(viewer, deployment.url, token);
      for (const path of ['/companies', `/companies/test/${large.companyId}`, '/runs', '/holds', '/tokens', '/notifications']) {
        await viewer.goto(deployment.url + path);
        const buttons = await viewer.getByRole('button').allInnerTexts();
        expect([path, buttons.filter((each) => !['Sign out', 'Show', 'Copy'].includes(each))]).toEqual([path, []]);
      }
      await goTo('Tokens');
      await page
        .getByRole('row', { name: new RegExp(name) })
        .getByRole('button', { name: 'Withdraw' })
        .click();
      await viewer.goto(`${deployment.url}/runs`);
      expect(new URL(viewer.url()).pathname).toBe('/login');
    });

    test('reads it all in the audit, and leaves', async () => {
      await goTo('Audit');
      const text = await page.locator('main').innerText();
      for (const action of [
        'company.sync',
        'company.pause',
        'company.resume',
        'run.cancel',
        'hold.reject',
        'hold.approve',
        'token.create',
        'token.delete',
      ])
        expect(text).toContain(action);
      expect(text).toContain('The company has left them.');
      await press('Sign out');
      await page.goto(`${deployment.url}/audit`);
      expect(new URL(page.url()).pathname).toBe('/login');
    });

    test('and the browser complained of nothing, and asked nobody else for anything', () => {
      expect(watched.faults).toEqual([]);
      // Its consent page was visited on purpose.
      watched.strangers.delete(deployment.sandbox.url.origin);
      expect([...watched.strangers]).toEqual([]);
    });
  });
});
