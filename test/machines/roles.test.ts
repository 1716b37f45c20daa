import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { openDatabase } from '../../src/db/connection/database.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { Deployment } from '../process/deployment.js';
import { emptyDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { startMuster } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from '../support/wait-for.js';
import { mirrorRecords } from '../warehouse/warehouse-fixture.js';

const KEYS = `k:${randomBytes(32).toString('base64')}`;
const PASSWORD = 'a-password';
const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function asAdmin(url: string, statement: string): Promise<void> {
  const admin = new pg.Client(url);
  await admin.connect();
  await admin.query(statement).finally(() => admin.end());
}

/** A role without any right, under a name that must be quoted. */
async function makeRole(): Promise<string> {
  const role = `Muster-${randomBytes(4).toString('hex')}`;
  await asAdmin(inject('postgres').url, `CREATE ROLE "${role}" LOGIN PASSWORD '${PASSWORD}'`);
  cleanups.push(() => asAdmin(inject('postgres').url, `DROP ROLE "${role}"`));
  return role;
}

function as(role: string, url: string): string {
  const parsed = new URL(url);
  parsed.username = role;
  parsed.password = PASSWORD;
  return parsed.href;
}

/** A database that an ordinary role owns. Its roles may be dropped once it is gone. */
async function ownedDatabase(): Promise<{ url: string; owner: string }> {
  const owner = await makeRole();
  const { url, close } = await emptyDatabase();
  cleanups.push(close);
  await asAdmin(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} OWNER TO "${owner}"`);
  return { url, owner: as(owner, url) };
}

async function run(
  args: string[],
  env: Record<string, string>,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const muster = startMuster(args, { MUSTER_ENCRYPTION_KEYS: KEYS, LOG_LEVEL: 'error', ...env });
  const { code } = await muster.exit;
  return { code, stdout: muster.stdout, stderr: muster.stderr };
}

describe.each(['Redis', 'PostgreSQL'])('with the queue in %s', (queue) => {
  const redis = queue === 'Redis' ? { REDIS_URL: redisUrl()! } : undefined;

  test('a role with rights on data alone does all that api and workers do', async () => {
    const role = await makeRole();
    const deployment = await Deployment.open({
      redisUrl: redis?.REDIS_URL,
      sandbox: {
        companies: [
          { name: 'One', employees: 1_234 },
          { name: 'Two', employees: 12 },
        ],
      },
    });
    cleanups.push(() => deployment.close());
    const owner = deployment.env.DATABASE_URL!;
    expect(await run(['migrate', '--grant-runtime', role], deployment.env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(role),
    });
    deployment.env.DATABASE_URL = as(role, owner);
    const processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
    const stop = async () => {
      for (const process of processes) process.kill('SIGTERM');
      await Promise.all(processes.map(({ exit }) => exit));
    };
    cleanups.push(stop);

    const [one, two] = deployment.sandbox.companies.map(({ companyId }) => companyId) as [string, string];
    for (const company of [one, two]) {
      await deployment.onboard(company);
      expect(await deployment.runEnd(company)).toMatchObject({ status: 'succeeded', trigger: 'onboarding' });
    }
    const { pool } = deployment.database.db;
    await pool.query('UPDATE muster.connections SET next_sync_at = now(); UPDATE muster.tokens SET refresh_at = now()');
    const night = () => waitFor(async () => (await deployment.lastRun(one)).trigger === 'nightly');
    await night();
    expect(await deployment.runEnd(one)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, { verified: true }] });
    expect((await deployment.call('POST', `/api/companies/test/${one}/rekey`, { resource: 'employees' })).status).toBe(200);
    await deployment.call('POST', `/api/companies/test/${one}/sync`, { mode: 'full' });
    expect(await deployment.runEnd(one)).toMatchObject({ status: 'succeeded' });
    expect(await mirrored(deployment.database.db, 'employees', one)).toEqual(upstream(deployment.sandbox, 'employees', one));
    expect((await deployment.call('GET', '/api/changes?limit=10')).status).toBe(200);
    expect((await deployment.call('POST', `/api/companies/test/${two}/connect-link`)).status).toBe(201);
    expect((await run(['rotate-keys'], deployment.env)).code).toBe(0);
    expect((await deployment.call('DELETE', `/api/companies/test/${two}`)).status).toBe(204);
    expect((await deployment.fetch('/readyz')).status).toBe(200);
    expect(await (await deployment.fetch('/metrics')).text()).toContain('muster_');
    for (const { stderr } of processes) expect(stderr).not.toMatch(/permission denied|42501/);
  });

  test('whatever a role lacks is said in words, until the owner of the database grants it', async () => {
    const role = await makeRole();
    const { url, owner } = await ownedDatabase();
    const own = { ...redis, DATABASE_URL: owner };
    const env = { ...redis, DATABASE_URL: as(role, url) };
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
    if (!redis) {
      await asAdmin(url, `REVOKE USAGE ON SCHEMA bullmq FROM "${role}"`);
      await refused(/may not look up or make the tables of the queue/);
      await asAdmin(url, `GRANT USAGE ON SCHEMA bullmq TO "${role}"`);
    }
    await asAdmin(
      url,
      `DELETE FROM _prisma_migrations WHERE migration_name = (SELECT max(migration_name) FROM _prisma_migrations)`,
    );
    await refused(/may not look up or apply the migrations/);
  });
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
