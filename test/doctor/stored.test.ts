import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { reconcileIssues } from '../../src/db/tables/issues.js';
import { checkAge } from '../../src/doctor/age.js';
import { checkCatalogue } from '../../src/doctor/catalogue.js';
import { checkClock } from '../../src/doctor/clock.js';
import { DatabaseAccess } from '../../src/doctor/database-access.js';
import { checkDisk } from '../../src/doctor/disk.js';
import { checkKeys } from '../../src/doctor/keys.js';
import { checkWebhook } from '../../src/doctor/webhook.js';
import { checkWorkers } from '../../src/doctor/workers.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { findings, found } from './findings.js';

/** A sweep of the issues as a worker makes it. */
const SWEEP = { exported: [], staleAfterHours: 26, hasWebhook: false, isWorker: true, secondsLeft: 3_600, isNightYoung: true };

let database: TestDatabase;
let access: DatabaseAccess;
beforeAll(async () => {
  database = await testDatabase();
  access = new DatabaseAccess(database);
});
afterEach(async () => {
  await emptyTables(
    database.db,
    'muster.connections',
    'muster.lists',
    'muster.runs',
    'muster.holds',
    'muster.connect_links',
    'muster.change_batches',
    'muster.issues',
  );
});
afterAll(() => database.close());

const sql = (text: string, ...values: unknown[]) => database.db.pool.query(text, values);

async function connect(
  columns: { readonly reauthorizationReason?: string; readonly paused?: boolean } = {},
): Promise<CompanyKey> {
  const company: CompanyKey = { environment: 'test', companyId: randomUUID() };
  await database.db.prisma.connection.create({ data: { ...company, ...columns } });
  return company;
}

test('workers that live are counted; that none does is a problem as soon as a company is onboarded', async () => {
  expect(await found(checkWorkers(access))).toEqual(['warning: no worker lives, and 0 companies are onboarded']);
  await connect();
  await sql(`INSERT INTO muster.workers (name, seen_at) VALUES ('dead', now() - interval '16 seconds')`);
  expect(await found(checkWorkers(access))).toEqual(['problem: no worker lives, and 1 company is onboarded']);
  await sql(`INSERT INTO muster.workers (name) VALUES ('alive')`);
  expect(await found(checkWorkers(access))).toEqual(['ok: 1 worker alive']);
});

test('a webhook that takes nothing is a problem, where one is set', async () => {
  const look = (isSet = true) => found(checkWebhook({ access, isSet }));
  expect(await look()).toEqual(['ok: no delivery has failed since the last one that was taken']);
  await sql(
    `UPDATE muster.webhook SET failing_since = now() - interval '3 minutes', last_error = '{"code":"answered","status":500}'`,
  );
  expect(await look()).toEqual([
    'problem: the webhook has taken nothing for 3 minutes (answered 500), and 0 notifications wait or failed',
  ]);
  expect(await look(false)).toEqual(['ok: no webhook is set: no notification is sent']);
});

describe('keys', () => {
  const key = (id: string) => ({ id, key: new Secret(randomBytes(32).toString('base64')) });
  const [now, before, gone] = [key('now'), key('before'), key('gone')];
  const TOKEN = 'doctor-canary-refresh-token';

  async function store(of: ReturnType<typeof key>): Promise<void> {
    const company = await connect();
    const cipher = new Cipher(new Keyring([of]));
    const sealed = (field: 'access_token' | 'refresh_token') => cipher.seal(new Secret(TOKEN), company, field);
    await database.db.prisma.token.create({
      data: { ...company, accessToken: sealed('access_token'), refreshToken: sealed('refresh_token') },
    });
  }

  test('tokens are counted by the key that they need: readable, of an older key, missing, and of another key under the same id', async () => {
    await store(now);
    await store(before);
    await store(gone);
    await store(key('now'));
    const all = await findings(checkKeys([now, before, key('idle')], access));
    expect(all.map(({ level, found: text }) => `${level}: ${text}`).toSorted()).toEqual([
      'ok: 2 tokens can be read with key now',
      'ok: neither tokens nor marks need the key idle: after `muster rotate-keys` it may go from MUSTER_ENCRYPTION_KEYS',
      'problem: 2 tokens do not open with key now: another key had this id, or the rows were altered',
      'problem: 2 tokens encrypted with key gone, which is missing: their companies cannot be synced',
      'warning: 2 tokens can be read with key before, which is not the first',
    ]);
    expect(JSON.stringify(all)).not.toMatch(/canary|v1\./);
  });

  test('the key of the marks is looked at, and keeps the key that it needs', async () => {
    const seal = (of: ReturnType<typeof key>) => new Cipher(new Keyring([of])).sealMarkKey(new Secret(TOKEN));
    const lookWith = async (sealed: string) => {
      await sql('TRUNCATE muster.mark_key');
      await sql('INSERT INTO muster.mark_key (sealed) VALUES ($1)', sealed);
      return found(checkKeys([now, before], access));
    };
    const unread = 'lists with a forgotten person cannot be walked';
    expect(await lookWith(seal(now))).toEqual([
      'ok: no token is stored',
      'ok: the key of the marks can be read',
      'ok: neither tokens nor marks need the key before: after `muster rotate-keys` it may go from MUSTER_ENCRYPTION_KEYS',
    ]);
    expect(await lookWith(seal(before))).toEqual([
      'ok: no token is stored',
      'warning: the key of the marks can be read with key before, which is not the first',
    ]);
    for (const [stored, name] of [
      [seal(gone), 'gone'],
      [seal(key('now')), 'now'],
    ] as const)
      expect(await lookWith(stored)).toContain(`problem: the key of the marks does not open with key ${name}: ${unread}`);
    await sql('TRUNCATE muster.mark_key');
  });

  test('where no key is kept yet, or the setting is wrong, it is said', async () => {
    expect(await found(checkKeys('none', access))).toEqual([expect.stringMatching(/^ok: none yet/)]);
    expect(await found(checkKeys('wrong', access))).toEqual([
      expect.stringMatching(/^warning: not looked at: MUSTER_ENCRYPTION_KEYS/),
    ]);
    expect(await found(checkKeys([now], access))).toEqual(['ok: no token is stored']);
  });
});

describe('catalogue', () => {
  test('names the lists that the database has and the catalogue no more', async () => {
    const company = await connect();
    await sql(
      `INSERT INTO muster.lists (environment, company_id, resource) VALUES ('test', $1, 'employees'), ('test', $1, 'cars')`,
      company.companyId,
    );
    expect(await found(checkCatalogue(() => loadCatalogue(), access))).toEqual([
      'ok: 2 lists: employees, departments',
      'warning: the catalogue has no list cars any more; its rows stay as they were, of 1 company',
    ]);
  });

  test('says each fault of a wrong one', async () => {
    expect(await found(checkCatalogue(() => loadCatalogue('/nowhere/catalogue.yaml'), access))).toEqual([
      expect.stringMatching(/^problem: MUSTER_CATALOGUE: ENOENT/),
    ]);
  });
});

describe('age', () => {
  const check = () => checkAge({ access, environments: ['test'], lists: { resources: ['employees'], staleAfterHours: 26 } });

  async function run(company: CompanyKey, columns: string, ...values: string[]): Promise<void> {
    await sql(
      `INSERT INTO muster.runs (environment, company_id, trigger, mode, ${columns}) VALUES ('test', $1, 'manual', 'resume', ${values.join(', ')})`,
      company.companyId,
    );
  }

  test('finds nothing where nothing is too old', async () => {
    const company = await connect();
    await sql(`INSERT INTO muster.tokens (environment, company_id, refresh_token) VALUES ('test', $1, 'x')`, company.companyId);
    await sql(
      `INSERT INTO muster.lists (environment, company_id, resource, last_verified_at) VALUES ('test', $1, 'employees', now() - interval '25 hours')`,
      company.companyId,
    );
    await run(company, 'status, heartbeat_at', `'running'`, 'now()');
    expect(await found(check())).toEqual(['ok: no token, list, run, link or hold is older than it should be']);
  });

  test('a list that no worker takes is a problem, but not while its company has a run or is paused', async () => {
    const overdue = async (state: Parameters<typeof connect>[0] = {}) => {
      const company = await connect(state);
      await sql(
        `INSERT INTO muster.scheduled_lists (environment, company_id, resource, next_sync_at) VALUES ('test', $1, 'employees', now() - interval '40 minutes')`,
        company.companyId,
      );
      return company;
    };
    await overdue({ paused: true });
    await run(await overdue(), 'status, heartbeat_at', `'running'`, 'now()');
    expect((await found(check())).filter((line) => line.includes('schedule'))).toEqual([]);
    await overdue();
    expect(await found(check())).toContainEqual(
      expect.stringMatching(/^problem: 1 list due by its schedule, the first 40 min(utes)? ago/),
    );
  });

  test('finds all that is, with how old it is', async () => {
    const company = await connect();
    const { companyId } = company;
    await connect({ reauthorizationReason: 'token_refused' });
    await sql(
      `INSERT INTO muster.tokens (environment, company_id, refresh_token, refresh_at) VALUES ('test', $1, 'x', now() - interval '3 hours')`,
      companyId,
    );
    await sql(
      `INSERT INTO muster.lists (environment, company_id, resource, last_verified_at) VALUES ('test', $1, 'employees', now() - interval '3 days')`,
      companyId,
    );
    const other = await connect();
    await sql(
      `UPDATE muster.connections SET created_at = now() - interval '5 days', next_sync_at = now() - interval '20 minutes' WHERE company_id = $1`,
      other.companyId,
    );
    await sql(
      `INSERT INTO muster.lists (environment, company_id, resource, begun_at) VALUES ('test', $1, 'employees', NULL)`,
      other.companyId,
    );
    await run(company, 'status, heartbeat_at', `'running'`, `now() - interval '10 minutes'`);
    await run(other, 'status, start_after', `'queued'`, `now() - interval '30 minutes'`);
    await sql(
      `INSERT INTO muster.connect_links (id, token_hash, environment, expires_at) VALUES (gen_random_uuid(), 'h', 'test', now() - interval '1 day')`,
    );
    await sql(
      `INSERT INTO muster.holds (environment, company_id, resource, run_id, walk_id, count, living, sample, opened_at)
       VALUES ('test', $1, 'employees', gen_random_uuid(), gen_random_uuid(), 9, 10, '{}', now() - interval '4 days')`,
      companyId,
    );
    const sweepAll = { take: () => Promise.resolve(true) };
    await reconcileIssues(database.db, sweepAll, { ...SWEEP, resources: ['employees'], environments: ['test'] });
    await sql(`UPDATE muster.issues SET first_seen_at = now() - interval '3 days 1 hour'`);
    const all = await findings(check());
    expect(all.map(({ level, found: text }) => `${level}: ${text}`)).toEqual([
      'warning: 1 list of 1 company late: the oldest proof is 3 days old',
      'problem: 2 lists of 2 companies never proved complete, 1 of them overdue',
      'problem: 1 token should have been refreshed, the first 3 hours ago',
      'warning: 1 company must authorize again, the first since 3 days',
      'problem: 1 run under way, and no worker has worked on it for 10 minutes',
      'problem: 1 run waiting for a worker, the first for 30 minutes',
      'problem: 1 nightly sync due, the first 20 minutes ago',
      'warning: 1 connect link expired within 14 days, and no company connected by it',
      'warning: deletions of 1 company wait for a decision, the first for 3 days',
    ]);
    for (const { next } of all) expect(next).toBeTruthy();
    await sql(`UPDATE muster.issues SET first_seen_at = now() - interval '2 days 23 hours'`);
    expect(await found(check())).not.toContainEqual(expect.stringContaining('deletions'));
    await sql(`UPDATE muster.issues SET status = 'resolved'`);
    expect(await found(check())).toHaveLength(7);
  });

  test('a run that waits in a busy night is none of it', async () => {
    const [busy, waiting] = [await connect(), await connect()];
    await run(busy, 'status, heartbeat_at', `'running'`, 'now()');
    await run(waiting, 'status, start_after', `'queued'`, `now() - interval '2 hours'`);
    expect(await found(check())).toEqual([
      'ok: no token, list, run, link or hold is older than it should be',
      'ok: 2 lists of 2 companies never proved complete: no first proof is overdue',
    ]);
  });
});

describe('disk', () => {
  test('says what the feed takes, and that retention does not come round', async () => {
    const needs = { access, home: undefined };
    expect(await found(checkDisk({ ...needs, changeRetentionDays: undefined }))).toEqual([
      expect.stringMatching(/^ok: the database takes [\d.]+ MB, of which the change feed [\d.]+ MB$/),
    ]);
    const company = await connect();
    await sql(
      `INSERT INTO muster.change_batches (environment, company_id, resource, changed_at, size, first_seq) VALUES ('test', $1, 'employees', now() - interval '40 days', 1, 1)`,
      company.companyId,
    );
    const late = await found(checkDisk({ ...needs, changeRetentionDays: 30 }));
    expect(late).toEqual([expect.stringMatching(/^warning: .*back to 40 days ago, and should be kept for 30 days$/)]);
    const kept = await found(checkDisk({ ...needs, changeRetentionDays: 39 }));
    expect(kept).toEqual([expect.stringMatching(/^ok: .*back to 40 days ago; it is kept for 39 days$/)]);
  });

  test('looks at the disk of an embedded database', async () => {
    const lines = await found(checkDisk({ access, changeRetentionDays: 30, home: '/' }));
    expect(lines[0]).toMatch(/^\w+: [\d.]+ [GM]B of [\d.]+ GB are free on the disk of \/$/);
  });
});

test.each([
  [0, 'ok: within 5 s of that of the database'],
  [-10_000, 'warning: 10 s behind that of the database'],
  [120_000, 'problem: 120 s ahead of that of the database'],
])('a clock that goes %i ms wrong is held against that of the database', async (shift, line) => {
  const clock = { ...systemClock, now: () => Date.now() + shift };
  expect(await found(checkClock({ access, probes: {}, clock }))).toEqual([line]);
});
