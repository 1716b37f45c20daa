import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

test.each([
  ['53100', 'database_full', /disk of PostgreSQL is full/],
  ['53200', 'database_failing', /out of memory/],
  ['53400', 'database_failing', /53400/],
  ['58030', 'database_failing', /file/],
] as const)('a call that fails by SQLSTATE %s is answered by %s, and has changed nothing', async (state, code, detail) => {
  const { companyId } = await admin.addCompany();
  await admin.db.pool.query(`
    CREATE FUNCTION muster.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${state}'; END $$;
    CREATE TRIGGER fail BEFORE UPDATE ON muster.connections FOR EACH ROW EXECUTE FUNCTION muster.fail()`);
  const { status, json } = await admin.call('POST', `/api/companies/test/${companyId}/pause`);
  await admin.db.pool.query('DROP FUNCTION muster.fail CASCADE');
  expect([status, json.code, json.sql_state]).toEqual([503, code, state]);
  expect(json.detail).toMatch(detail);
  expect((await admin.call('POST', `/api/companies/test/${companyId}/pause`)).status).toBe(200);
});
