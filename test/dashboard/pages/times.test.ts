import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

let admin: AdminFixture;
let page: PageClient;

beforeAll(async () => {
  admin = await startAdmin(undefined, { schedule: { cron: '0 2 * * *', timezone: 'Asia/Kolkata', spreadMinutes: 120 } });
  page = await PageClient.signedIn(admin.url);
});
afterAll(() => admin.stop());

test('a time is relative and exact, in the zone of the schedule, which the page names', async () => {
  const company = await admin.addCompany();
  const createdAt = new Date('2024-11-24T20:00:30Z');
  await admin.db.prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full', createdAt } });
  const { html } = await page.open(`/companies/test/${company.companyId}`);
  const [time] = /<time dateTime="2024-11-24T20:00:30.000Z"[^]*?<\/time>/i.exec(html) ?? [];
  expect(time).toContain('years ago');
  expect(time).toContain('25 Nov 2024, 01:30');
  expect(time).toContain('title="Mon, 25 Nov 2024, 01:30:30 GMT+5:30"');
  expect(html.match(/Times are in Asia\/Kolkata/g)).toHaveLength(1);
});
