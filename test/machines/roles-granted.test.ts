import pg from 'pg';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/db/connection/database.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { startMuster } from '../support/process.js';
import { mirrorRecords } from '../warehouse/warehouse-fixture.js';
import { as, asAdmin, cleanups, KEYS, makeRole, ownedDatabase, run } from './database-roles.js';

test('whatever a role lacks is said in words, until the owner of the database grants it', async () => {
  const role = await makeRole();
  const { url, owner } = await ownedDatabase();
  const own = { DATABASE_URL: owner };
  const env = { DATABASE_URL: as(role, url) };
  const command = `Run \`muster migrate --grant-runtime ${role}\` as the owner of the database`;
  const refused = async (what: RegExp) => {
    const { code, stderr } = await run(['worker'], env);
    expect([code, stderr.trim().split('\n')]).toEqual([2, [expect.stringMatching(what)]]);
    expect(stderr).toContain(command);
  };
  await refused(/may not look up or apply the migrations/);
  expect(await run(['migrate'], own)).toMatchObject({ code: 0 });
  await refused(/may not look up or apply the migrations/);
  expect(await run(['migrate', '--grant-runtime', 'no-such-role'], own)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There is no role no-such-role'),
  });
  expect(await run(['migrate', '--grant-runtime', role], own)).toMatchObject({ code: 0 });
  expect(await run(['migrate'], env)).toMatchObject({ code: 0, stdout: 'The database is up to date.\n' });

  await asAdmin(url, `REVOKE INSERT, DELETE ON muster.runs FROM "${role}"; REVOKE SELECT ON mirror.changes FROM "${role}"`);
  await refused(/lacks SELECT on mirror.changes, and more on 1 others/);
  await asAdmin(url, `GRANT SELECT ON mirror.changes TO "${role}"`);
  await refused(/lacks INSERT, DELETE on muster.runs\. Run/);
  await asAdmin(url, `GRANT ALL ON muster.runs TO "${role}"; CREATE TABLE mirror.of_somebody_else ()`);
  await asAdmin(url, `REVOKE USAGE ON SCHEMA bullmq FROM "${role}"`);
  await refused(/may not look up or make the tables of the queue/);
  await asAdmin(url, `GRANT USAGE ON SCHEMA bullmq TO "${role}"`);
  await asAdmin(
    url,
    `DELETE FROM _prisma_migrations WHERE migration_name = (SELECT max(migration_name) FROM _prisma_migrations)`,
  );
  await refused(/may not look up or apply the migrations/);
});

test('a list that is new in the catalogue gets its table from the owner, and rights by default', async () => {
  const role = await makeRole();
  const { url, owner } = await ownedDatabase();
  expect(await run(['migrate', '--grant-runtime', role], { DATABASE_URL: owner })).toMatchObject({ code: 0 });
  const env = { DATABASE_URL: as(role, url), MUSTER_CATALOGUE: 'examples/catalogue.yaml' };
  expect(await run(['worker'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/may not make mirror\."\w+", the table of a list/),
  });
  expect(await run(['migrate'], { ...env, DATABASE_URL: owner })).toMatchObject({ code: 0 });
  const worker = startMuster(['worker'], { MUSTER_ENCRYPTION_KEYS: KEYS, ...env });
  await worker.waitForOutput(/ready: worker/);
  worker.kill('SIGTERM');
  expect(await worker.exit).toMatchObject({ code: 0 });
});

test('a reader sees all that is made for readers, also what comes later, nothing else, and changes nothing', async () => {
  const role = await makeRole();
  const { url, owner } = await ownedDatabase();
  const env = { DATABASE_URL: owner };
  const nobody = await run(['migrate', '--grant', 'no "body'], env);
  expect(nobody).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There is no role no "body. Make one first: CREATE ROLE "no ""body"'),
  });
  for (const _ of ['once', 'again'])
    expect(await run(['migrate', '--grant', role], env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${role} may read schemas mirror and warehouse.`),
    });
  expect(await run(['migrate', '--grant-warehouse', role], env)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${role} may read schema warehouse.`),
  });
  const db = openDatabase({ url: owner });
  const people = Array.from({ length: 25 }, (_, n) => ({ id: `e${n}`, born: '2000-02-29', seen: '2024-02-29T10:00:00Z' }));
  await mirrorRecords(db, await onboard(db), people).finally(() => db.close());
  await asAdmin(
    owner,
    'CREATE TABLE mirror.later (LIKE mirror.employees); CREATE VIEW warehouse.later AS SELECT * FROM mirror.later',
  );

  const reader = new pg.Client(as(role, url));
  await reader.connect();
  cleanups.push(() => reader.end());
  const { rows } = await reader.query<{ schema: string; name: string }>(
    `SELECT nspname AS schema, format('%I.%I', nspname, relname) AS name FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
     WHERE nspname IN ('mirror', 'warehouse', 'muster') AND relkind IN ('r', 'v') ORDER BY 2`,
  );
  const refused = { code: '42501' };
  for (const { schema, name } of rows) {
    if (schema === 'muster') await expect(reader.query(`SELECT * FROM ${name}`), name).rejects.toMatchObject(refused);
    else {
      await expect(reader.query(`SELECT * FROM ${name}`), name).resolves.toBeDefined();
      const { fields } = await reader.query(`SELECT * FROM ${name} LIMIT 0`);
      await expect(reader.query(`DELETE FROM ${name}`), name).rejects.toMatchObject({
        code: expect.stringMatching(/^(42501|55000)$/),
      });
      await expect(reader.query(`UPDATE ${name} SET "${fields[0]!.name}" = NULL`), name).rejects.toMatchObject({
        code: expect.stringMatching(/^(42501|55000)$/),
      });
    }
  }
  for (const records of ['employees', 'employees_history', `employees_as_of(now())`]) {
    const { rows: read } = await reader.query(`SELECT * FROM warehouse.${records} WHERE id = 'e7'`);
    expect(read, records).toMatchObject([{ id: 'e7', born: expect.anything(), seen: expect.anything(), _rest: null }]);
  }
  expect(rows.filter(({ schema }) => schema === 'muster').length).toBeGreaterThan(20);
  expect(rows.filter(({ schema }) => schema === 'warehouse').map(({ name }) => name)).toEqual(
    expect.arrayContaining(['barriers', 'feed', 'later', 'lists', 'runs', 'walks'].map((name) => `warehouse.${name}`)),
  );
  await expect(reader.query('CREATE TABLE warehouse.mine (n int)')).rejects.toMatchObject(refused);
});
