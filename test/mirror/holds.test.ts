import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { Prisma } from '../../src/generated/prisma/client.js';
import { approveHold, rejectHold } from '../../src/mirror/holds.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { onboard, openWalk, records, verifiedWalk } from './mirror-fixture.js';

let database: TestDatabase;
let company: CompanyKey;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  company = await onboard(database.db);
});

async function livingIds(): Promise<string[]> {
  const rows = await database.db.prisma.employee.findMany({ where: { ...company, deletedAt: null }, orderBy: { id: 'asc' } });
  return rows.map(({ id }) => id);
}

function holdRows() {
  return database.db.prisma.hold.findMany({ where: company, orderBy: { seq: 'asc' } });
}

describe('the guard', () => {
  test.each([
    // living, gone, share, rows, held
    [100, 20, 0.2, 10, false],
    [100, 21, 0.2, 10, true],
    [40, 9, 0.2, 10, false],
    [40, 10, 0.2, 10, true],
    [9, 9, 0.2, 10, false],
    [10, 10, 0.2, 10, true],
    [10, 10, 1, 10, true],
    [100, 99, 1, 10, false],
    [5, 1, 0, 0, true],
    [30, 2, 0.05, 2, true],
  ])('of %i living rows %i gone, by share %d and rows %i: held %s', async (living, gone, share, rows, held) => {
    const all = records(living);
    await verifiedWalk(database.db, company, all);
    const outcome = await verifiedWalk(database.db, company, all.slice(gone), { share, rows });
    expect(outcome).toMatchObject(held ? { deleted: 0, held: gone } : { deleted: gone, held: 0 });
    expect(await livingIds()).toHaveLength(held ? living : living - gone);
  });

  test('a service that answers no records for a company that had 5,000 deletes nothing and opens a hold', async () => {
    await verifiedWalk(database.db, company, records(5_000));
    expect(await verifiedWalk(database.db, company, [])).toMatchObject({ deleted: 0, held: 5_000 });
    expect(await holdRows()).toMatchObject([{ status: 'open', count: 5_000, living: 5_000 }]);
    expect((await holdRows())[0]!.sample).toHaveLength(20);
    expect(await livingIds()).toHaveLength(5_000);
  });
});

test('approving deletes what the walk lacked', async () => {
  await verifiedWalk(database.db, company, records(20));
  await verifiedWalk(database.db, company, records(4));
  const [hold] = await holdRows();
  await approveHold(database.db, hold!.id);
  expect(await livingIds()).toEqual(['r1', 'r2', 'r3', 'r4']);
  expect(await holdRows()).toMatchObject([{ status: 'approved' }]);
  await expect(approveHold(database.db, hold!.id)).rejects.toMatchObject({ code: 'hold_not_open' });
  await expect(rejectHold(database.db, hold!.id)).rejects.toMatchObject({ code: 'hold_not_open' });
  const { records: living } = await database.db.prisma.list.findFirstOrThrow({ where: company });
  expect(living).toBe(4);
});

test('approving twice at once deletes once', async () => {
  await verifiedWalk(database.db, company, records(20));
  await verifiedWalk(database.db, company, []);
  const [hold] = await holdRows();
  const outcomes = await Promise.allSettled([approveHold(database.db, hold!.id), approveHold(database.db, hold!.id)]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const deletes = await database.db.prisma.change.count({ where: { batch: company, op: 'delete' } });
  expect(deletes).toBe(20);
});

test('rejecting keeps the rows, and the next walk that lacks them asks again', async () => {
  await verifiedWalk(database.db, company, records(20));
  await verifiedWalk(database.db, company, []);
  await rejectHold(database.db, (await holdRows())[0]!.id);
  expect(await livingIds()).toHaveLength(20);
  await verifiedWalk(database.db, company, []);
  expect(await holdRows()).toMatchObject([{ status: 'rejected' }, { status: 'open', count: 20 }]);
});

test('a later verified walk replaces the hold, or closes it', async () => {
  await verifiedWalk(database.db, company, records(20));
  await verifiedWalk(database.db, company, []);
  await verifiedWalk(database.db, company, records(5));
  expect(await holdRows()).toMatchObject([{ status: 'superseded' }, { status: 'open', count: 15 }]);
  await verifiedWalk(database.db, company, records(20));
  expect(await holdRows()).toMatchObject([{ status: 'superseded' }, { status: 'superseded' }]);
});

test('a hold is not approved once a newer walk has begun', async () => {
  await verifiedWalk(database.db, company, records(20));
  await verifiedWalk(database.db, company, []);
  await openWalk(database.db, company);
  await expect(approveHold(database.db, (await holdRows())[0]!.id)).rejects.toMatchObject({ code: 'hold_not_open' });
  expect(await livingIds()).toHaveLength(20);
});

test('a rekey marks the rows deleted, closes the hold and lets another member be the id', async () => {
  await verifiedWalk(database.db, company, records(20));
  await verifiedWalk(database.db, company, []);
  const at = new Date();
  await database.db.prisma.list.updateMany({ where: company, data: { idField: 'uid', lastVerifiedAt: at } });
  await database.db.prisma.company.updateMany({ where: company, data: { verifiedAt: { employees: at, departments: at } } });
  expect(await rekeyList(database.db, { ...company, resource: 'employees' })).toBe(20);
  expect(await livingIds()).toEqual([]);
  expect(await holdRows()).toMatchObject([{ status: 'superseded' }]);
  expect(await database.db.prisma.list.findFirst({ where: company })).toMatchObject({
    idField: null,
    records: 0,
    verifiedWalkId: null,
    lastVerifiedAt: null,
  });
  const { verifiedAt } = await database.db.prisma.company.findFirstOrThrow({ where: company });
  expect(verifiedAt).toEqual({ departments: at.toISOString() });
  expect(await database.db.prisma.walk.count({ where: { ...company, checkpoint: { not: Prisma.DbNull } } })).toBe(0);
  await expect(rekeyList(database.db, { ...company, resource: 'departments' })).rejects.toMatchObject({
    code: 'unknown_resource',
  });
});
