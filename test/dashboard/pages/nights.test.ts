import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCatalogue } from '../../../src/catalogue/load-catalogue.js';
import { systemClock } from '../../../src/core/clock.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { nightSweep } from '../../../src/runs/nights.js';
import { type AdminFixture, startAdmin } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

const DAY_MS = 86_400_000;
const BEGAN = Math.floor(Date.now() / 60_000) * 60_000 - 3 * 3_600_000;
const begin = new Date(BEGAN);
const SCHEDULE = { cron: `${begin.getUTCMinutes()} ${begin.getUTCHours()} * * *`, timezone: 'UTC', spreadMinutes: 120 };

let admin: AdminFixture;
let page: PageClient;
let company: CompanyKey;
const sweep = () => nightSweep({ db: admin.db, catalogue: loadCatalogue(), clock: systemClock, schedule: SCHEDULE })();

beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
  page = await PageClient.signedIn(admin.url);
});
afterAll(() => admin.stop());

/** A nightly run of so many nights ago, whose walk ended as said. */
async function addNight(ago: number, walk: object, status = 'succeeded') {
  const at = new Date(BEGAN - ago * DAY_MS + 60_000);
  const { id } = await admin.db.prisma.run.create({
    data: {
      ...company,
      trigger: 'nightly',
      mode: 'full',
      status,
      createdAt: at,
      startedAt: at,
      finishedAt: new Date(at.getTime() + 80_000),
      walks: { create: [{ ...company, resource: 'employees', position: 0, status, ...walk }] },
    },
  });
  return id;
}

/** Cells of the calendar: where each leads, how it looks, and what it says. */
function cellsOf(html: string) {
  return [...html.matchAll(/<a class="night ([\w-]+)" href="([^"]+)"><title>([^<]+)<\/title>/g)].map(([, look, href, text]) => ({
    look,
    href: href!.replaceAll('&amp;', '&'),
    text,
  }));
}

const wordsOf = (html: string) => html.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

test('before the first night is counted there is no calendar, and no plot before a list was read', async () => {
  expect((await page.open('/')).html).not.toContain('class="calendar"');
  expect(wordsOf((await page.open(`/companies/test/${company.companyId}`)).html)).toContain('No list has been read');
});

test('a cell a night: how complete it was in colour, sign and words, and the way to its runs', async () => {
  const [whole, , failed] = [
    await addNight(3, { verified: true, records: 1_200, inserted: 1_200 }),
    await addNight(2, { unverifiedReason: 'list_changed', records: 1_203, inserted: 4, deleted: 1 }),
    await addNight(0, {}, 'failed'),
  ];
  await sweep();
  const { html } = await page.open('/');
  const cells = cellsOf(html);
  expect(cells.map(({ look }) => look)).toEqual(['whole', 'short', 'none', 'short']);
  expect(cells[0]!.text).toMatch(
    /^\w+day \d+ \w+: 1 of 1 lists proved, 1 of 1 nightly runs succeeded, 1,200 inserted, 0 updated, 0 deleted$/,
  );
  expect(cells[1]!.text).toContain('0 of 1 lists proved, 1 of 1 nightly runs succeeded, 1 read without a proof, 4 inserted');
  expect(cells[2]!.text).toMatch(/: no run$/);
  expect(cells[3]!.text).toContain('0 of 1 nightly runs succeeded, 1 failed');
  expect(html.match(/class="night absent"/g)).toHaveLength(26);
  // The same without a pointer.
  expect(wordsOf(html)).toContain('The nights as a table The last nights, newest first Night Lists proved');
  expect(wordsOf(html)).toMatch(/day \d+ \w+ 0 of 1 1 0 4 0 1 1 min 20 s/);

  const runsBehind = async (cell: number) => (await page.open(cells[cell]!.href)).html;
  const first = await runsBehind(0);
  expect([first.includes(whole), first.includes(failed)]).toEqual([true, false]);
  expect(wordsOf(first)).toMatch(/Requested from \d+ \w+, [\d:]{5} until \d+ \w+, [\d:]{5}/);
  expect(first).toMatch(/<input type="hidden" name="since" value="\d{4}-/);
  const last = await runsBehind(3);
  expect([last.includes(whole), last.includes(failed)]).toEqual([false, true]);
});

test('a night that is not over is under way as long as something is to come, and 95 in 100 are nearly all', async () => {
  const others = await Promise.all(Array.from({ length: 20 }, () => admin.addCompany()));
  await admin.db.prisma.run.deleteMany({ where: { createdAt: { gte: begin } } });
  await addNight(0, { verified: true });
  await admin.db.prisma.connection.updateMany({
    where: { companyId: { in: others.map(({ companyId }) => companyId) } },
    data: { nextSyncAt: new Date(BEGAN + DAY_MS / 2) },
  });
  await sweep();
  const underWay = (await page.open('/')).html;
  expect(cellsOf(underWay).at(-1)).toMatchObject({
    look: 'under-way',
    text: expect.stringContaining('1 of 41 lists proved so far'),
  });
  await admin.db.prisma.connection.updateMany({ data: { nextSyncAt: new Date(BEGAN + DAY_MS) } });
  for (const [i, other] of others.entries()) {
    const walk = { ...other, resource: 'employees', position: 0, status: 'succeeded', verified: i > 0 };
    const at = new Date(BEGAN + 60_000);
    await admin.db.prisma.run.create({
      data: {
        ...other,
        trigger: 'nightly',
        mode: 'full',
        status: 'succeeded',
        createdAt: at,
        startedAt: at,
        finishedAt: at,
        walks: { create: [walk] },
      },
    });
  }
  await sweep();
  expect(cellsOf((await page.open('/')).html).at(-1)).toMatchObject({
    look: 'nearly',
    text: expect.stringContaining('20 of 21'),
  });
});

test('a list has a plot of its rows and one of its changes, and says both in words', async () => {
  const { html } = await page.open(`/companies/test/${company.companyId}`);
  const words = wordsOf(html);
  expect(words).toContain('Rows: 1,203 , 1,200 to 1,203 in 2 nights');
  expect(words).toContain('Changes: 1,205 in 3 nights');
  expect(html).toMatch(/<title>\w+day \d+ \w+: 1,203 rows, not proved<\/title>/);
  expect(html).toMatch(/<title>\w+day \d+ \w+: 4 inserted, 0 updated, 1 deleted<\/title>/);
  expect(html.match(/<circle class="(un)?proved" cx/g)).toHaveLength(4);
  expect(html).toMatch(/<polyline class="line" points="[\d., ]+"/);
  expect(html).not.toContain('NaN');
  expect(words).toMatch(/not counted yes 0 0 0/);
});

test('the overview says what the deadline is, and how long the first in line has waited', async () => {
  const words = async () => wordsOf((await page.open('/')).html);
  expect(await words()).toContain('The deadline of a list is 26 hours after its last proof');
  expect(await words()).toMatch(
    /No night has begun since the first company was connected\. 0 of \d+ lists were proved complete so far/,
  );
  const waiting = await startAdmin();
  await waiting.db.prisma.run.create({
    data: {
      ...(await waiting.addCompany()),
      trigger: 'manual',
      mode: 'full',
      startAfter: new Date(Date.now() - 130 * 60_000 - 5_000),
    },
  });
  const other = await PageClient.signedIn(waiting.url);
  expect(wordsOf((await other.open('/')).html)).toContain('1 queued the first one has waited for 2 h 10 min');
  await waiting.stop();
});

test('a time that none is, is refused', async () => {
  expect((await page.open('/runs?since=yesterday')).status).toBe(400);
  expect((await page.open(`/runs?since=2024-11-24T02:00:00%2B01:00&company_id=${randomUUID()}`)).html).toContain(
    'Requested from 24 Nov 2024, 01:00',
  );
});
