import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasBrowser, useBrowser } from './browser.js';
import { type Deployment, deploy, signIn } from './deployment.js';
import { fill } from './filled-pages.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Colours and widths are all that differs between them, and only the style sheet knows those: a page that was loaded once shows both. */
const WIDE = { look: 'light and wide', colorScheme: 'light', viewport: { width: 1280, height: 900 } } as const;
const LOOKS = [{ look: 'dark, on a phone', colorScheme: 'dark', viewport: { width: 390, height: 844 } }, WIDE] as const;
/** Without `AXE=all` axe is asked of less (`KEPT`, `shown`): it takes as long for each element, and finds the same. */
const ASKS_ALL = process.env.AXE === 'all';
/** The number of rows or items of a list that are kept when they are made alike. */
const KEPT = ASKS_ALL ? Infinity : 3;
/** Made alike are elements of the same tags, classes, styles and attributes, with a text in the same places. */
const PREPARE = `
  const tagOf = (element) => [
    element.tagName,
    ...[...element.attributes].map(({ name, value }) => name + '=' + (/^(class|role|style|type)$/.test(name) ? value : value !== '')).sort(),
  ].join(' ');
  const made = (element) => [
    tagOf(element),
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ''),
    '(', ...[...element.children].map(made), ')',
  ].join(' ');
  for (const list of document.querySelectorAll('tbody, ul, ol')) {
    const alike = new Map();
    for (const element of [...list.children]) {
      const count = 1 + (alike.get(made(element)) ?? 0);
      alike.set(made(element), count);
      if (count > ${KEPT}) element.remove();
    }
  }
  const elements = [...document.body.querySelectorAll('*')];
  const places = new Map([[document.body, '']]);
  for (const element of elements) places.set(element, places.get(element.parentElement) + ' > ' + tagOf(element));`;

describe.skipIf(!hasBrowser())('every page', () => {
  const openPage = useBrowser();
  let deployment: Deployment;
  let pages: Awaited<ReturnType<typeof fill>>;
  beforeAll(async () => {
    deployment = await deploy();
    pages = await fill(deployment);
  });
  afterAll(() => deployment?.stop());

  /** The places of elements in pages before: tags, classes and attributes from the body down. Without `AXE=all` axe is asked on a phone only of elements in new places. */
  const shown = new Set<string>();

  /** What is wrong with the page as it is: the looks in which it is wider than the window, and what axe finds, as a line each. */
  async function faultsOf(page: Page): Promise<string[]> {
    const faults: string[] = [];
    const show = async ({ colorScheme, viewport }: (typeof LOOKS)[number]) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(viewport);
    };
    for (const look of LOOKS) {
      await show(look);
      const [whole, seen] = await page.evaluate<[number, number]>('[document.documentElement.scrollWidth, window.innerWidth]');
      if (whole > seen) faults.push(`${look.look}: ${whole} pixels wide`);
    }
    // Through the debugger, since the policy of the page lets no script of ours in.
    const places = await page.evaluate<string[]>(
      `{${PREPARE}\n${AXE}\nwindow.elements = elements; elements.map((element) => places.get(element))}`,
    );
    const isNew = places.map((place) => !shown.has(place));
    for (const place of places) shown.add(place);
    // A page that renews itself may have replaced some of them.
    const newest = `elements.filter((element, n) => ${JSON.stringify(isNew)}[n] && element.isConnected)`;
    for (const look of LOOKS.toReversed()) {
      await show(look);
      const include = ASKS_ALL || look === WIDE ? '[document]' : newest;
      const found = await page.evaluate<string[]>(
        `((include) => include.length === 0 ? [] : axe.run({ include }, { resultTypes: ['violations'], reporter: 'no-passes' }).then(({ violations }) =>
          violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ' ' + failureSummary))))(${include})`,
      );
      faults.push(...found.map((fault) => `${look.look}: ${fault}`));
    }
    return faults;
  }

  test('is without a fault to axe, and not wider than the window, light and wide, dark and on a phone', async () => {
    const page = await openPage();
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
      expect(await page.title()).not.toBe('pwned');
    }
  });
});
