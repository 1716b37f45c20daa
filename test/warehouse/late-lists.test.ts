import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeWarehouseSettings } from '../../src/db/tables/warehouse-settings.js';
import { addCompany, hoursAgo } from '../runs/issue-world.js';
import { type TestDatabase, testDatabase } from '../support/database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

test('warehouse.lists calls a list late by its last proof, or while it has none by its first walk and its company', async () => {
  const { db } = database;
  const old = { provedHoursAgo: null, begunHoursAgo: 27 };
  const lists = { employees: old, departments: { provedHoursAgo: null, begunHoursAgo: 25 } };
  const unproved = await addCompany(db, { lists });
  const paused = await addCompany(db, { paused: true, lists });
  const proved = await addCompany(db, { lists: { employees: { provedHoursAgo: 27 }, departments: { provedHoursAgo: 25 } } });
  // Its lists were begun before that was noted, so that the time of its onboarding counts.
  const [earlier, fresh] = [await addCompany(db, { lists }), await addCompany(db, { lists })];
  await db.prisma.list.updateMany({ where: { OR: [earlier, fresh] }, data: { begunAt: null } });
  await db.prisma.connection.updateMany({ where: fresh, data: { createdAt: hoursAgo(25) } });

  const late = async () => {
    const { rows } = await db.pool.query<{ company_id: string; resource: string; is_late: boolean }>(
      'SELECT company_id::text, resource, is_late FROM warehouse.lists',
    );
    expect(rows.filter(({ is_late }) => typeof is_late !== 'boolean')).toEqual([]);
    return rows.flatMap(({ company_id, resource, is_late }) => (is_late ? [`${company_id} ${resource}`] : [])).toSorted();
  };
  const employees = [unproved, proved, earlier].map(({ companyId }) => `${companyId} employees`);
  expect(await late()).toEqual([...employees, `${earlier.companyId} departments`].toSorted());
  await writeWarehouseSettings(db, { staleAfterHours: 1_001 });
  expect(await late()).toEqual([]);
  await writeWarehouseSettings(db, { staleAfterHours: 2 });
  const all = await late();
  expect(all).toHaveLength(8);
  expect(all.some((list) => list.startsWith(paused.companyId))).toBe(false);
});
