import { afterAll, beforeAll, expect, test } from 'vitest';
import { estimateNight } from '../../../src/db/tables/walks.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

/** A run whose lists held 1,000 and 200 records at their last proof, and that has received 250 of them in 50 s. */
async function runUnderWay() {
  const { prisma } = admin.db;
  const company = await admin.addCompany();
  const startedAt = new Date(Date.now() - 50_000);
  const walk = { ...company, status: 'running' };
  for (const [resource, records] of [
    ['employees', 1_000],
    ['departments', 200],
  ] as const)
    await prisma.list.create({ data: { ...company, resource, records, lastVerifiedAt: new Date() } });
  return prisma.run.create({
    data: {
      ...company,
      trigger: 'nightly',
      mode: 'full',
      status: 'running',
      startedAt,
      walks: {
        create: [
          { ...walk, resource: 'employees', position: 0, received: 250 },
          { ...walk, resource: 'departments', position: 1, status: 'queued' },
        ],
      },
    },
  });
}

const left = async (id: string) =>
  ((await admin.call('GET', `/api/runs/${id}`)).json as { estimated_seconds_left: number | null }).estimated_seconds_left;

test('a run tells how long it still takes at its pace, once all of its lists are known', async () => {
  const { prisma } = admin.db;
  const { id, environment, companyId } = await runUnderWay();
  // 950 records at 5 a second.
  expect(await left(id)).toBeGreaterThanOrEqual(190);
  expect(await left(id)).toBeLessThan(250);
  const { data } = (await admin.call('GET', '/api/runs')).json as { data: { id: string; estimated_seconds_left: number }[] };
  expect(data.find((run) => run.id === id)?.estimated_seconds_left).toBeGreaterThanOrEqual(190);

  const [alone] = await estimateNight(prisma);
  expect(alone!.seconds).toBeGreaterThanOrEqual(190);
  // A second one doubles what is left, and the pace.
  const other = await runUnderWay();
  const [both] = await estimateNight(prisma);
  expect(both!.seconds).toBeLessThan(260);
  // One that has waited for quiet hours since it began has an unknown pace; the night takes it to be the average.
  await prisma.run.update({ where: { id: other.id }, data: { quietUntil: new Date(Date.now() - 1_000) } });
  expect(await left(other.id)).toBeNull();
  expect((await estimateNight(prisma))[0]!.seconds).toBeLessThan(260);
  // One that waits has no pace of its own.
  await prisma.run.update({ where: { id: other.id }, data: { status: 'queued', startedAt: null } });
  expect((await estimateNight(prisma))[0]!.seconds).toBeGreaterThan(380);
  expect(await left(other.id)).toBeNull();

  // The total that the service told is newer than the last proof.
  await prisma.walk.updateMany({ where: { runId: id, resource: 'employees' }, data: { totalRecords: 260 } });
  expect(await left(id)).toBeLessThan(80);
  await prisma.list.updateMany({ where: { environment, companyId, resource: 'departments' }, data: { lastVerifiedAt: null } });
  expect(await left(id)).toBeNull();
  expect((await estimateNight(prisma))[0]!.seconds).toBeNull();
});
