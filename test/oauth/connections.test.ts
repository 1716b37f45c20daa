import { expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { rotateKeys } from '../../src/oauth/key-rotation.js';
import { newCompany, oauthRoom, onboarded, TESTER } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
const room = oauthRoom(database.db, server);

test('pause and resume, twice each, and a company that is not there', async () => {
  const { company } = await onboarded(room, server);
  expect(await room.connections.pause(company)).toMatchObject({ ...company, status: 'paused' });
  expect(await room.connections.pause(company)).toMatchObject({ status: 'paused' });
  expect(await room.connections.resume(company)).toMatchObject({ status: 'active' });
  expect(await room.connections.resume(company)).toMatchObject({ status: 'active' });
  const stranger = newCompany();
  const { connections } = room;
  for (const call of [
    () => connections.pause(stranger),
    () => connections.resume(stranger),
    () => connections.remove(stranger, TESTER),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: 'company_not_found' });
  }
  expect(await room.connections.find(stranger)).toBeUndefined();
});

test('a new authorization is required once; resuming does not help', async () => {
  const { company } = await onboarded(room, server);
  await room.connections.pause(company);
  expect(await room.connections.requireReauthorization(company, 'token_refused')).toBe(true);
  expect(await room.connections.requireReauthorization(company, 'access_token_refused')).toBe(false);
  expect(await room.connections.find(company)).toMatchObject({
    status: 'reauthorization_required',
    reauthorizationReason: 'token_refused',
  });
  await expect(room.connections.resume(company)).rejects.toMatchObject({ code: 'reauthorization_required' });
  await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
  await room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
  expect(await room.connections.find(company)).toMatchObject({ status: 'paused' });
});

test('lists page by page, filtered', async () => {
  await database.db.pool.query('DELETE FROM muster.connections');
  const companies: CompanyKey[] = [];
  for (let i = 0; i < 5; i++) companies.push((await onboarded(room, server)).company);
  const [first] = companies;
  if (!first) throw new Error('no company');
  await room.connections.pause(first);
  await database.db.pool.query('UPDATE mirror.companies SET name = $1 WHERE company_id = $2', ['Acme', first.companyId]);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await room.connections.list({ limit: 2, cursor });
    seen.push(...page.data.map(({ companyId }) => companyId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  expect(seen).toEqual(companies.map(({ companyId }) => companyId).toSorted());
  expect((await room.connections.list({ limit: 9, status: 'paused' })).data).toMatchObject([
    { companyId: first.companyId, name: 'Acme' },
  ]);
  expect((await room.connections.list({ limit: 9, status: 'active', environment: 'test' })).data).toHaveLength(4);
  expect((await room.connections.list({ limit: 5 })).nextCursor).toBeUndefined();
  expect((await room.connections.list({ limit: 9, environment: 'production' })).data).toEqual([]);
  const { rows } = await database.db.pool.query(
    'SELECT environment, company_id AS "companyId", name, status FROM warehouse.companies ORDER BY environment, company_id',
  );
  expect((await room.connections.list({ limit: 9 })).data).toMatchObject(rows);
  expect(rows).toHaveLength(5);
  for (const position of ['nonsense', `test|${'-'.repeat(36)}`]) {
    const forged = Buffer.from(position).toString('base64url');
    await expect(room.connections.list({ limit: 9, cursor: forged })).rejects.toMatchObject({ code: 'invalid_request' });
  }
});

test('removal: nothing of the company is left but runs and audit, and nothing of others is touched', async () => {
  const pool = database.db.pool;
  const [{ company }, { company: other }] = [await onboarded(room, server), await onboarded(room, server)];
  await pool.query('CREATE TABLE IF NOT EXISTS mirror."odd ""name" (LIKE mirror.employees INCLUDING ALL)');
  for (const { companyId } of [company, other]) {
    const { rows } = await pool.query<{ id: string }>(
      `INSERT INTO muster.runs (environment, company_id, trigger, mode, status) VALUES ('test', $1, 'manual', 'resume', 'running') RETURNING id`,
      [companyId],
    );
    const walk = await pool.query<{ id: string }>(
      `INSERT INTO muster.walks (run_id, position, environment, company_id, resource, status, checkpoint)
       VALUES ($1, 0, 'test', $2, 'employees', 'running', '{"skip":5}') RETURNING id`,
      [rows[0]?.id, companyId],
    );
    const walkId = walk.rows[0]?.id;
    await pool.query(
      `WITH keys AS (
         INSERT INTO muster.page_keys (environment, company_id, resource, ids, keys) VALUES ('test', $2, 'employees', '{a}', '') RETURNING id
       ), snapshot AS (
         INSERT INTO muster.page_snapshots (environment, company_id, resource, keys_id)
         SELECT 'test', $2, 'employees', id FROM keys RETURNING id
       )
       INSERT INTO muster.walk_pages SELECT $1, 1, 1, id, NULL FROM snapshot`,
      [walkId, companyId],
    );
    await pool.query(
      `INSERT INTO muster.rejected_records (walk_id, pass, page, position, reason, text) VALUES ($1, 1, 1, 0, 'x', 'x')`,
      [walkId],
    );
    await pool.query(`INSERT INTO muster.lists (environment, company_id, resource) VALUES ('test', $1, 'employees')`, [
      companyId,
    ]);
    await pool.query(
      `INSERT INTO muster.holds (environment, company_id, resource, run_id, walk_id, count, living) VALUES ('test', $1, 'employees', $2, $3, 1, 1)`,
      [companyId, rows[0]?.id, walkId],
    );
    await pool.query(
      `INSERT INTO muster.connect_links (id, token_hash, environment, company_id, expires_at) VALUES ($1::uuid, 'hash of ' || $1::text, 'test', $1::uuid, now())`,
      [companyId],
    );
    for (const table of ['employees', 'departments', '"odd ""name"']) {
      await pool.query(`INSERT INTO mirror.${table} (environment, company_id, id, data) VALUES ('test', $1, 'a', '{}')`, [
        companyId,
      ]);
    }
    await room.vault.quarantine(
      database.db.prisma,
      { company: { environment: 'test', companyId }, reason: 'overtaken' },
      new Secret('refresh-token'),
    );
  }
  const traces = async ({ companyId }: CompanyKey) => {
    const count = async (sql: string) => Number((await pool.query<{ n: string }>(sql, [companyId])).rows[0]?.n);
    const tables = [
      'muster.connections',
      'muster.tokens',
      'muster.quarantined_tokens',
      'muster.lists',
      'muster.holds',
      'muster.connect_links',
      'muster.page_snapshots',
      'muster.page_keys',
    ].concat(['mirror.employees', 'mirror.departments', 'mirror.companies', 'mirror."odd ""name"']);
    const found: Record<string, number> = {};
    for (const table of tables) found[table] = await count(`SELECT count(*) AS n FROM ${table} WHERE company_id = $1`);
    for (const table of ['muster.walk_pages', 'muster.rejected_records']) {
      found[table] = await count(
        `SELECT count(*) AS n FROM ${table} JOIN muster.walks w ON w.id = walk_id WHERE w.company_id = $1`,
      );
    }
    return found;
  };
  const before = await traces(other);
  expect(Object.entries(before).every(([, n]) => n === 1)).toBe(true);

  await room.connections.remove(company, { name: 'an operator', role: 'operator' });
  expect(Object.values(await traces(company)).every((n) => n === 0)).toBe(true);
  expect(await traces(other)).toEqual(before);
  const runs = await pool.query(
    `SELECT r.status AS run, r.finished_at IS NOT NULL AS ended, w.status AS walk, w.checkpoint FROM muster.runs r JOIN muster.walks w ON w.run_id = r.id WHERE r.company_id = $1`,
    [company.companyId],
  );
  expect(runs.rows).toEqual([{ run: 'cancelled', ended: true, walk: 'cancelled', checkpoint: null }]);
  const feed = await pool.query(
    'SELECT resource, op, data FROM muster.changes c JOIN muster.change_batches b ON b.id = c.batch_id WHERE company_id = $1 ORDER BY resource',
    [company.companyId],
  );
  const gone = { op: 'delete', data: null };
  expect(feed.rows).toEqual(['departments', 'employees', 'odd "name'].map((resource) => ({ resource, ...gone })));
  const audit = await pool.query('SELECT actor, action FROM muster.audit WHERE company_id = $1', [company.companyId]);
  expect(audit.rows).toEqual([{ actor: 'an operator', action: 'company.remove' }]);
  await expect(room.connections.remove(company, TESTER)).rejects.toMatchObject({ code: 'company_not_found' });
  await pool.query('DROP TABLE mirror."odd ""name"');
});

test('a company that comes back has a new connection, and an old epoch means nothing to it', async () => {
  const { company } = await onboarded(room, server);
  const ids = async () =>
    (
      await database.db.pool.query<{ id: string; epoch: string }>(
        'SELECT id, epoch FROM muster.connections JOIN muster.tokens USING (environment, company_id) WHERE company_id = $1',
        [company.companyId],
      )
    ).rows[0];
  const before = await ids();
  await room.connections.remove(company, TESTER);
  await room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
  const after = await ids();
  expect(after?.id).not.toBe(before?.id);
  expect(BigInt(after?.epoch ?? 0)).toBeGreaterThan(BigInt(before?.epoch ?? 0));
});

test('a database that is away is database_unavailable, not an error of the library', async () => {
  const away = openDatabase({ url: 'postgres://nobody@127.0.0.1:1/nothing' });
  const { connections, manager, cipher } = oauthRoom(away, server);
  const company = newCompany();
  for (const call of [
    () => connections.find(company),
    () => connections.pause(company),
    () => connections.requireReauthorization(company, 'token_refused'),
    () => manager.sourceFor(company).get(),
    () => manager.due(1),
    () => rotateKeys(away, cipher),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: 'database_unavailable', retryable: true });
  }
  await away.close();
});
