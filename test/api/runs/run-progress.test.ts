import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunModel } from '../../../src/api/runs/run-model.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

/** A run of three lists: one is read, one is being read, one waits. */
async function underWay(company: CompanyKey, status = 'running') {
  const walk = { ...company, status: 'queued', pages: 0, received: 0 };
  const { id } = await admin.db.prisma.run.create({
    data: {
      ...company,
      trigger: 'nightly',
      mode: 'full',
      status,
      startedAt: new Date(),
      walks: {
        create: [
          { ...walk, resource: 'departments', position: 0, status: 'succeeded', pages: 1, received: 40, totalRecords: 40 },
          { ...walk, resource: 'employees', position: 1, status: 'running', pages: 3, received: 60, totalRecords: 200 },
          { ...walk, resource: 'shifts', position: 2 },
        ],
      },
    },
  });
  return id;
}

const show = async (id: string) => (await admin.call('GET', `/api/runs/${id}`)).json as RunModel;

test('an unfinished run says how far it is, from totals and last proofs', async () => {
  const company = await admin.addCompany();
  const id = await underWay(company);
  const known = { resource: 'employees', lists_done: 1, lists: 3, pages: 4, received: 100 };
  expect((await show(id)).progress).toEqual({ ...known, expected: null, percent: null });

  await admin.db.prisma.list.create({ data: { ...company, resource: 'shifts', records: 160, lastVerifiedAt: new Date() } });
  expect((await show(id)).progress).toEqual({ ...known, expected: 400, percent: 25 });
  const { data } = (await admin.call('GET', '/api/runs?status=running')).json as { data: RunModel[] };
  expect(data[0]!.progress?.percent).toBe(25);

  // A list may have grown since its last proof. A run that has not ended is never whole.
  await admin.db.prisma.walk.updateMany({ where: { runId: id, resource: 'shifts' }, data: { received: 900, status: 'running' } });
  await admin.db.prisma.walk.updateMany({ where: { runId: id, resource: 'employees' }, data: { received: 200 } });
  expect((await show(id)).progress).toMatchObject({ received: 1_140, expected: 1_140, percent: 99 });

  await admin.db.prisma.run.update({ where: { id }, data: { status: 'failed' } });
  expect((await show(id)).progress).toBeUndefined();
});

test('the event stream says it, too', async () => {
  const id = await underWay(await admin.addCompany());
  const response = await fetch(`${admin.url}/api/runs/${id}/events`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const reader = response.body!.getReader();
  const text = new TextDecoder().decode((await reader.read()).value);
  await reader.cancel();
  const run = JSON.parse(/^data: (.*)$/m.exec(text)![1]!) as RunModel;
  expect(run.progress).toEqual((await show(id)).progress);
});

test('a run says that its company was removed', async () => {
  const company = await admin.addCompany();
  const id = await underWay(company, 'succeeded');
  expect(await show(id)).not.toHaveProperty('company_removed');
  expect((await admin.call('DELETE', `/api/companies/test/${company.companyId}`)).status).toBe(204);
  expect(await show(id)).toMatchObject({ company_removed: true, status: 'succeeded' });
});

test('runs are filtered by a day in the zone of the schedule', async () => {
  const oslo = await startAdmin(undefined, { schedule: { cron: '0 2 * * *', timezone: 'Europe/Oslo', spreadMinutes: 120 } });
  const company = await oslo.addCompany();
  const run = { ...company, trigger: 'nightly', mode: 'full', status: 'succeeded' };
  // In Oslo the 25th of October 2026 lasts 25 hours.
  const times = ['2026-10-24T21:59:59Z', '2026-10-24T22:00:00Z', '2026-10-25T22:59:59Z', '2026-10-25T23:00:00Z'];
  for (const time of times) await oslo.db.prisma.run.create({ data: { ...run, createdAt: new Date(time) } });
  const of = async (query: string) => {
    const { data } = (await oslo.call('GET', `/api/runs?${query}`)).json as { data: RunModel[] };
    return data.map(({ created_at }) => created_at.replace('.000', ''));
  };
  expect(await of('day=2026-10-25')).toEqual([times[2], times[1]]);
  expect(await of('day=2026-10-25&since=2026-10-25T00:00:00Z')).toEqual([times[2]]);
  expect(await of('day=2026-10-25&until=2026-10-25T00:00:00Z&since=2026-10-20T00:00:00Z')).toEqual([times[1]]);
  expect((await oslo.call('GET', '/api/runs?day=2026-02-30')).status).toBe(400);
  await oslo.stop();
});
