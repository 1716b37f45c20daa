import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { DatabaseAccess } from '../../src/doctor/database-access.js';
import { checkTransactions } from '../../src/doctor/transactions.js';
import { eraseCompany } from '../../src/erasure/mirror-erasure.js';
import { findings } from '../doctor/findings.js';
import { onboard, verifiedWalk } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { PostgresServer } from '../support/postgres-server.js';
import { startMuster } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { startPgBouncer } from './pgbouncer.js';

/** What docs/replication.md has the other server do. */
const [MAKE_TABLES, SUBSCRIBE] = [...readFileSync('docs/replication.md', 'utf8').matchAll(/```sql\n(.*?)```/gs)].map(
  ([, sql]) => sql!,
);

const SETTINGS = { MUSTER_ENCRYPTION_KEYS: `k:${randomBytes(32).toString('base64')}`, LOG_LEVEL: 'error' };

let publisher: PostgresServer;
let subscriber: PostgresServer;
let database: TestDatabase;
let other: pg.Client;

beforeAll(async () => {
  [publisher, subscriber] = await Promise.all([PostgresServer.start(), PostgresServer.start()]);
  await (await publisher.database()).close();
});

afterAll(async () => {
  await other?.end();
  await database?.close();
  await subscriber.remove();
  await publisher.remove();
});

async function publish(env: Record<string, string> = {}, ...args: string[]) {
  const muster = startMuster(['publish', ...args], { DATABASE_URL: publisher.url, ...SETTINGS, ...env });
  const { code } = await muster.exit;
  return { code, stdout: muster.stdout, stderr: muster.stderr };
}

function as(role: string): string {
  const url = new URL(publisher.url);
  url.username = role;
  url.password = 'a-password';
  return url.href;
}

async function ask<Row extends pg.QueryResultRow>(statement: string): Promise<Row[]> {
  const client = new pg.Client(publisher.url);
  await client.connect();
  return (await client.query<Row>(statement).finally(() => client.end())).rows;
}

const rowsOf = (client: Pick<pg.Client, 'query'>, table: string) =>
  client.query(`SELECT to_jsonb(t) AS row FROM mirror.${table} t ORDER BY 1`).then(({ rows }) => JSON.stringify(rows));

/** Until the other server has the same rows. */
async function same(): Promise<void> {
  for (const table of ['companies', 'employees', 'departments'])
    await waitFor(async () => (await rowsOf(other, table)) === (await rowsOf(database.db.pool, table)), {
      what: `${table} to arrive`,
    });
}

test('a subscriber gets what is there, then every insert, update and delete', async () => {
  await ask('ALTER TABLE mirror.departments REPLICA IDENTITY NOTHING; ALTER TABLE mirror.companies REPLICA IDENTITY FULL');
  const tables = ['mirror.companies', 'mirror.departments', 'mirror.employees'];
  expect(await publish()).toEqual({
    code: 0,
    stdout: `The publication muster has ${tables.join(', ')}.\n`,
    stderr: expect.stringMatching(/^No server can subscribe yet: wal_level is replica\. .*restart PostgreSQL\.\n$/) as string,
  });
  await ask('ALTER SYSTEM SET wal_level = logical');
  await publisher.stop('fast');
  await publisher.start();
  const again = await publish({}, '--json');
  expect(again).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(again.stdout)).toEqual({ publication: 'muster', tables, added: [], wal_level: 'logical' });
  expect(
    await ask(
      `SELECT relname AS name, relreplident AS identity FROM pg_class
       WHERE oid IN ('mirror.companies'::regclass, 'mirror.departments'::regclass) ORDER BY 1`,
    ),
  ).toEqual([
    { name: 'companies', identity: 'f' },
    { name: 'departments', identity: 'd' },
  ]);

  database = await publisher.database();
  const { db } = database;
  const [company, gone] = [await onboard(db), await onboard(db)];
  const walk = (...texts: string[]) => verifiedWalk(db, company, texts, { share: 1, rows: 1_000 });
  // Longer than fits beside the row, so that an update of another column leaves it out of the log.
  const long = randomBytes(20_000).toString('hex');
  await walk(`{"id":"a","n":1.10}`, `{"id":"b","long":"${long}"}`, `{"id":"c"}`);
  await verifiedWalk(db, gone, ['{"id":"z"}'], { share: 1, rows: 1_000 });

  await ask(`CREATE ROLE replicator LOGIN REPLICATION PASSWORD 'a-password'`);
  const grant = startMuster(['migrate', '--grant', 'replicator'], { DATABASE_URL: publisher.url, ...SETTINGS });
  expect(await grant.exit, grant.stderr).toMatchObject({ code: 0 });
  other = new pg.Client(subscriber.url);
  await other.connect();
  await other.query(MAKE_TABLES!);
  await other.query(SUBSCRIBE!.replace(/postgres:[^']+/, as('replicator')));
  await same();
  await walk(`{"id":"a","n":1.20}`, `{"id":"d","n":1e2}`, `{"id":"c"}`);
  await same();
  expect((await other.query(`SELECT id FROM mirror.employees WHERE deleted_at IS NOT NULL`)).rows).toEqual([{ id: 'b' }]);
  expect((await other.query(`SELECT length(data->>'long') AS n FROM mirror.employees WHERE id = 'b'`)).rows).toEqual([
    { n: 40_000 },
  ]);
  await inTransaction(db, (tx) => eraseCompany(tx, gone));
  await same();
  expect((await other.query(`SELECT id FROM mirror.employees WHERE id = 'z'`)).rows).toEqual([]);
});

test('through a pooler it is made as well, with a word about where to subscribe', async () => {
  for (const mode of ['transaction', 'session'] as const) {
    const pooled = await testDatabase();
    const pooler = await startPgBouncer(pooled.url, mode);
    try {
      const { code, stderr } = await publish({ DATABASE_URL: pooler.through(pooled.url) });
      expect([code, stderr]).toEqual([0, expect.stringContaining('leads through a pooler')]);
      const { rows } = await pooled.db.pool.query(`SELECT tablename AS name FROM pg_publication_tables ORDER BY 1`);
      expect(rows.map(({ name }: { name: string }) => name)).toEqual(['companies', 'departments', 'employees']);
    } finally {
      await pooler.close();
      await pooled.close();
    }
  }
});

test('a list that is new in the catalogue is added, once it has its table', async () => {
  const env = { MUSTER_CATALOGUE: 'examples/catalogue.yaml' };
  expect(await publish(env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/There is no table mirror\.\w+.*Run `muster migrate` first/) as string,
  });
  const migrate = startMuster(['migrate'], { DATABASE_URL: publisher.url, ...SETTINGS, ...env });
  expect(await migrate.exit, migrate.stderr).toMatchObject({ code: 0 });
  const { stdout } = await publish(env, '--json');
  const { added, tables } = JSON.parse(stdout) as { added: string[]; tables: string[] };
  expect(added.length).toBeGreaterThan(0);
  expect(tables).toEqual(expect.arrayContaining([...added, 'mirror.employees']));
});

test('a user who owns none of it is told who can', async () => {
  await ask(`CREATE ROLE somebody LOGIN PASSWORD 'a-password'`);
  expect(await publish({ DATABASE_URL: as('somebody') }, 'theirs')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('may not publish these tables; run the command as their owner') as string,
  });
});

test('doctor warns of a slot that nobody reads, of one that lags, and of one whose log is gone', async () => {
  const look = async (bytes: number) =>
    (await findings(checkTransactions(new DatabaseAccess(database), 300, bytes))).map(
      ({ level, found, next }) => `${level}: ${found} ${next ?? ''}`,
    );
  const isActive = async (active: boolean) =>
    waitFor(async () => (await ask<{ active: boolean }>(`SELECT active FROM pg_replication_slots`))[0]!.active === active);
  await isActive(true);
  expect(await look(1e9)).toEqual([expect.stringMatching(/^ok: none/)]);
  expect(await look(-1)).toEqual([
    expect.stringMatching(
      /^warning: the reader of the replication slot muster is too slow, and it keeps [\d.]+ MB of .* pg_stat_subscription/,
    ),
  ]);
  await other.query('ALTER SUBSCRIPTION muster DISABLE');
  await isActive(false);
  expect(await look(1e9)).toEqual([
    expect.stringMatching(/^warning: the replication slot muster has no reader, .* pg_drop_replication_slot\('muster'\)$/),
  ]);
  await ask(`ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'`);
  await ask('SELECT pg_reload_conf()');
  for (let n = 0; n < 3; n += 1) await ask(`SELECT pg_logical_emit_message(false, 'x', 'x'), pg_switch_wal()`);
  await ask('CHECKPOINT');
  expect(await look(1e9)).toEqual([
    expect.stringMatching(/^problem: the replication slot muster has lost write-ahead log .* and create the subscription again/),
  ]);
  await ask(`SELECT pg_drop_replication_slot('muster')`);
  await other.query('ALTER SUBSCRIPTION muster SET (slot_name = NONE); DROP SUBSCRIPTION muster');
});
