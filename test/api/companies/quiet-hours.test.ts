import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { QuietHours } from '../../../src/core/quiet-hours.js';
import { windowAt } from '../../support/quiet.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

const HOUR = 3_600_000;
const { windows, ends } = windowAt(systemClock.now(), 2 * HOUR);
const ending = new Date(ends).toISOString();

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin(undefined, { quiet: new QuietHours({ windows, timezone: 'UTC' }) });
});
afterAll(() => admin.stop());

const pathOf = ({ environment, companyId }: CompanyKey) => `/api/companies/${environment}/${companyId}`;
const setQuietHours = (company: CompanyKey, quiet_hours: unknown) =>
  admin.call('POST', `${pathOf(company)}/quiet-hours`, { quiet_hours });

test('a company shows its own quiet hours and when they end, and the overview those of the installation', async () => {
  const company = await admin.addCompany();
  expect((await admin.call('GET', pathOf(company))).json).toMatchObject({ quiet_hours: null, quiet_until: ending });
  const none = await setQuietHours(company, 'none');
  expect([none.status, none.json.quiet_hours, none.json.quiet_until]).toEqual([200, 'none', undefined]);
  const own = windowAt(systemClock.now(), 3 * HOUR);
  const set = await setQuietHours(company, ` ${own.text} `);
  expect(set.json).toMatchObject({ quiet_hours: own.text, quiet_until: new Date(own.ends).toISOString() });
  expect((await setQuietHours(company, null)).json).toMatchObject({ quiet_hours: null, quiet_until: ending });
  expect((await admin.call('GET', '/api/overview')).json.quiet_until).toBe(ending);
  const entries = await admin.db.prisma.auditEntry.findMany({ where: company, orderBy: { id: 'asc' } });
  expect(entries.map(({ action, details }) => [action, (details as Record<string, unknown>)['quiet_hours']])).toEqual([
    ['company.quiet_hours', 'none'],
    ['company.quiet_hours', own.text],
    ['company.quiet_hours', 'default'],
  ]);
});

test('a sync that is requested in quiet hours says until when it waits', async () => {
  const company = await admin.addCompany();
  const { status, json } = await admin.call('POST', `${pathOf(company)}/sync`);
  expect([status, json.run]).toMatchObject([202, { status: 'queued', waits_for: 'quiet_hours', waits_until: ending }]);
  const verify = await admin.call('POST', `${pathOf(company)}/verify`);
  expect(verify.json.run).toMatchObject({ kind: 'verify', waits_for: 'quiet_hours', waits_until: ending });
  expect((await admin.call('GET', '/api/overview')).json.oldest_waiting_seconds).toBeNull();
  // Without quiet hours it is due at once.
  await setQuietHours(company, 'none');
  expect((await admin.call('GET', `/api/runs/${json.run.id}`)).json).not.toHaveProperty('waits_until');
});

test('windows that cannot be used are refused with every fault, and nothing changes', async () => {
  const company = await admin.addCompany();
  const { status, json } = await setQuietHours(company, '07:00-07:00,8-9');
  expect([status, json.code]).toEqual([422, 'invalid_quiet_hours']);
  expect(json.detail).toMatch(/window 1 begins and ends.*window 2 must be.*For example: 07:00-09:00/);
  expect((await setQuietHours(company, '00:00-24:00')).status).toBe(422);
  expect((await setQuietHours(company, 7)).status).toBe(400);
  expect((await admin.call('GET', pathOf(company))).json.quiet_hours).toBeNull();
});

test('an unknown company has none', async () => {
  const { status, json } = await setQuietHours({ environment: 'test', companyId: randomUUID() }, 'none');
  expect([status, json.code]).toEqual([404, 'company_not_found']);
});
