import { createHmac, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { CompanyKey } from '../../src/core/company.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import type { PrivacyRules } from '../../src/privacy/rules.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { waitFor } from '../support/wait-for.js';
import { dump, KEY, People, peopleWith, privacyIssues, privacyKey, sweepFor } from './privacy-list.js';
import { type HarnessOptions, type SyncHarness, syncHarness } from './sync-harness.js';

const hmac = (text: string, key = KEY) => createHmac('sha256', key).update(text).digest('hex');
const RULES: PrivacyRules = { nationalId: 'drop', 'home.street': 'mask', email: 'hash' };

let sandbox: Sandbox;
let database: TestDatabase;
let people: People;
let company: CompanyKey;
const harnesses: SyncHarness[] = [];

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ name: 'C', employees: 0 }] });
  database = await testDatabase();
  await ensureMirrorTables(database.db, { endpoints: peopleWith({}), get: () => undefined });
});
afterAll(async () => {
  for (const harness of harnesses) await harness.close();
  await sandbox.stop();
  await database.close();
});
beforeEach(async () => {
  people = new People();
  await emptyTables(
    database.db,
    'muster.issues',
    'muster.connections',
    'muster.lists',
    'muster.runs',
    'muster.change_batches',
    'mirror.people',
    'mirror.guests',
  );
  company = await onboard();
});

function harnessWith(rules: PrivacyRules, options: HarnessOptions & { key?: Buffer } = {}): SyncHarness {
  const { key, ...rest } = options;
  const tokens = { get: async () => secret, renew: async () => secret, refused: async () => {} };
  const endpoints = peopleWith(rules, privacyKey(key));
  const harness = syncHarness(database.db, { url: sandbox.url, tokens }, endpoints, { respond: people.respond, ...rest });
  harnesses.push(harness);
  return harness;
}
const secret = { reveal: () => 'a.b.c' } as never;

async function onboard(): Promise<CompanyKey> {
  const key: CompanyKey = { environment: 'test', companyId: randomUUID() };
  await database.db.prisma.connection.create({ data: key });
  return key;
}

const person = (n: number) =>
  `{"uid": "p${n}", "nationalId":"CANARY-no-${n}", "home":[{"street":"CANARY street ${n}","zip":0.10}],` +
  `"email":"\\u0043ANARY${n}@example.com","pay":12345678901234567890.120}`;
const CANARY = /CANARY/;

async function texts(resource = 'people', { companyId } = company): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ text: string }>(
    `SELECT data::text AS text FROM mirror.${resource} WHERE company_id = $1 ORDER BY id`,
    [companyId],
  );
  return rows.map(({ text }) => text);
}

describe('a list with rules', () => {
  test('never has in the database what they forbid, and every digit of what they leave', async () => {
    const harness = harnessWith(RULES);
    people.set(company.companyId, 'people', [person(1), person(2), '"CANARY is no object"', '{"email":"CANARY","nationalId":1}']);
    people.set(company.companyId, 'guests', ['{"uid":"g","email":"CANARY1@example.com"}']);
    const other = await onboard();
    people.set(other.companyId, 'guests', ['{"uid":"h","email":"CANARY1\\u0040example.com"}']);
    expect((await harness.sync(company)).status).toBe('succeeded');
    await harness.sync(other);
    await stampChanges(database.db);

    const joined = hmac('CANARY1@example.com');
    expect((await texts())[0]).toBe(
      `{"pay": 12345678901234567890.120, "uid": "p1", "home": [{"zip": 0.10, "street": "***************"}], "email": "${joined}"}`,
    );
    expect(await texts('guests')).toEqual([`{"uid": "g", "email": "${joined}"}`]);
    expect(await texts('guests', other)).toEqual([`{"uid": "h", "email": "${joined}"}`]);
    const stored = (await dump(database.db)).replaceAll('CANARY is no object', '');
    expect(stored).toContain(joined);
    expect(CANARY.exec(stored)).toBeNull();
  });

  test('is unchanged at the next walk', async () => {
    const harness = harnessWith(RULES);
    people.set(company.companyId, 'people', [1, 2, 3, 4, 5, 6].map(person));
    await harness.sync(company);
    expect((await harness.sync(company, { trigger: 'nightly' })).walks[0]).toMatchObject({
      verified: true,
      unchanged: 6,
      updated: 0,
    });
  });
});

describe('a rule that finds nothing', () => {
  const unmatched = async () =>
    (await database.db.prisma.list.findFirstOrThrow({ where: { ...company, resource: 'people' } })).unmatchedRules;
  const rules: PrivacyRules = { email: 'hash', phone: 'drop' };
  const withPhone = '{"uid":"a","email":"x","phone":"1"}';
  const others = [...'bcdefghijkl'].map((id) => `{"uid":"${id}","email":"x"}`);

  test('is an issue until it finds something, and none while the list is empty', async () => {
    const harness = harnessWith(rules);
    await harness.sync(company);
    expect(await privacyIssues(database.db)).toEqual([]);
    people.set(company.companyId, 'people', others);
    await harness.sync(company);
    expect(await unmatched()).toEqual(['phone']);
    expect(await privacyIssues(database.db)).toEqual(['privacy_rule_unmatched people 1']);
    people.set(company.companyId, 'people', [withPhone, ...others]);
    await harness.sync(company);
    expect(await privacyIssues(database.db)).toEqual([]);
  });

  test('is not forgotten by a worker that continues a walk which was interrupted after its only find', async () => {
    people.set(company.companyId, 'people', [withPhone, ...others]);
    const half = await harnessWith(rules).sync(company, {}, { stopAfterPages: 1 });
    expect(half.status).toBe('running');
    const end = await harnessWith(rules).work(half.id);
    expect(end.walks[0]).toMatchObject({ verified: true, pages: expect.any(Number) as number });
    expect(await unmatched()).toEqual([]);
  });

  test('has found what a 304 confirms', async () => {
    people.set(company.companyId, 'people', [withPhone, ...others]);
    const harness = harnessWith(rules, { etags: true });
    await harness.sync(company, { trigger: 'nightly' });
    people.set(company.companyId, 'people', [withPhone, ...others.slice(0, -1), '{"uid":"l","email":"y"}']);
    await harness.sync(company, { trigger: 'nightly' });
    expect(await unmatched()).toEqual([]);
  });
});

describe('changed rules', () => {
  const loose: PrivacyRules = { nationalId: 'drop' };

  /** A history under loose rules: rows, a deleted one, changes of every kind and a rejected record. */
  async function lived(): Promise<void> {
    const harness = harnessWith(loose);
    people.set(company.companyId, 'people', [1, 2, 3, 4, 5, 6, 7].map(person));
    people.set(company.companyId, 'guests', [person(9), '{"email":"CANARY of nobody"}']);
    await harness.sync(company);
    people.set(
      company.companyId,
      'people',
      [1, 2, 3, 4, 5, 6].map(person).map((text) => text.replace('"pay":1', '"pay":2')),
    );
    await harness.sync(company);
    await stampChanges(database.db);
    expect(await dump(database.db)).toMatch(CANARY);
  }

  test('leave nothing of the old text once the next walk has begun, and say when it has ended', async () => {
    await lived();
    const harness = harnessWith(RULES);
    const before = await harness.sync(company, {}, { stopAfterPages: 1 });
    expect(before.status).toBe('running');
    await sweepFor(database.db, peopleWith(RULES))();
    expect(CANARY.exec(await dump(database.db))).toBeNull();
    expect(await privacyIssues(database.db)).toEqual(['privacy_rewrite_pending guests 1', 'privacy_rewrite_pending people 1']);
    await harness.work(before.id);
    people.set(company.companyId, 'guests', [person(9)]);
    await harness.sync(company);
    expect(await privacyIssues(database.db)).toEqual([]);
    expect(CANARY.exec(await dump(database.db))).toBeNull();
    expect(await texts()).toHaveLength(7); // with the deleted one
  });

  test('keep no second connection waiting while a sweep rewrites a list', async () => {
    await lived();
    const blocker = await database.db.pool.connect();
    const { rows } = await blocker.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await blocker.query('BEGIN; SELECT 1 FROM muster.change_batches FOR UPDATE');
    // A transaction sees pg_stat_activity as it was at its first look.
    const blocked = async () =>
      (await database.db.pool.query('SELECT 1 FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))', [rows[0]!.pid]))
        .rowCount;
    const sweep = sweepFor(database.db, peopleWith(RULES));
    const first = sweep();
    await waitFor(async () => (await blocked()) === 1, { what: 'the sweep to wait' });
    await sweep();
    expect(await blocked()).toBe(1);
    await blocker.query('ROLLBACK');
    blocker.release();
    await first;
    expect(CANARY.exec(await dump(database.db))).toBeNull();
  });

  test('are followed without the service, deleted rows included, and consumers learn of it', async () => {
    await lived();
    await database.db.prisma.connection.updateMany({ data: { paused: true } });
    const sweep = sweepFor(database.db, peopleWith(RULES));
    await sweep();
    await stampChanges(database.db);
    expect(CANARY.exec(await dump(database.db))).toBeNull();
    expect(await privacyIssues(database.db)).toEqual([]); // nobody can walk it, and nothing of the old text is left
    const { rows } = await database.db.pool.query<{ op: string; n: number; known: number }>(
      `SELECT op, count(*)::int AS n, count(data)::int AS known FROM mirror.changes WHERE resource = 'people' GROUP BY op ORDER BY op`,
    );
    expect(rows).toEqual([
      { op: 'delete', n: 1, known: 0 },
      { op: 'insert', n: 7, known: 0 },
      { op: 'update', n: 12, known: 6 },
    ]);
    expect((await texts())[6]).toContain(hmac('CANARY7@example.com'));
    await database.db.prisma.connection.updateMany({ data: { paused: false } });
    const run = await harnessWith(RULES).sync(company);
    expect(run.walks[0]).toMatchObject({ verified: true, updated: 0, unchanged: 6 });
  });

  test('fence a walk that applies the old ones', async () => {
    await lived();
    let stopped = () => {};
    let goOn = () => {};
    const isStopped = new Promise<void>((resolve) => (stopped = resolve));
    const goesOn = new Promise<void>((resolve) => (goOn = resolve));
    const old = harnessWith(loose, {
      beforeRequest: async ({ query }) => {
        if (Number((query as { skip?: string }).skip ?? 0) === 0) return;
        stopped();
        await goesOn;
      },
    });
    people.set(company.companyId, 'people', [1, 2, 3, 4, 5, 6, 7, 8, 9].map(person));
    const { id } = await old.runs.request({ company, trigger: 'manual', mode: 'full' });
    const work = old.work(id);
    await isStopped;
    await sweepFor(database.db, peopleWith(RULES))();
    goOn();
    expect((await work).walks[0]!.status).not.toBe('succeeded');
    expect(CANARY.exec(await dump(database.db))).toBeNull();
  });

  test('that forbid less are made right by the next walk, and purge nothing', async () => {
    const harness = harnessWith(RULES);
    people.set(company.companyId, 'people', [1, 2].map(person));
    await harness.sync(company);
    const sweep = sweepFor(database.db, peopleWith(loose));
    await sweep();
    expect(await privacyIssues(database.db)).toHaveLength(2);
    expect((await harnessWith(loose).sync(company)).walks[0]).toMatchObject({ verified: true, updated: 2 });
    expect((await texts())[0]).toContain('CANARY street 1');
    expect((await texts())[0]).not.toContain('nationalId');
    expect(await privacyIssues(database.db)).toEqual([]);
  });

  test('and a changed key leave no hash of the old one', async () => {
    people.set(company.companyId, 'people', [1, 2].map(person));
    await harnessWith({ email: 'hash' }).sync(company);
    const key = Buffer.alloc(32, 2);
    await harnessWith({ email: 'hash' }, { key }).sync(company);
    expect((await texts())[0]).toContain(hmac('CANARY1@example.com', key));
    await stampChanges(database.db);
    expect(await dump(database.db)).not.toContain(hmac('CANARY1@example.com'));
  });
});

describe('a child list with rules', () => {
  const entry = (path: string, more: object) => ({
    method: 'GET',
    path: `/api/companies/{company_id}/${path}`,
    pager: { style: 'skip-take', in: 'query', size: 4 },
    ...more,
  });
  const endpointsWith = (privacy: PrivacyRules) =>
    validateCatalogue(
      { people: entry('people', {}), notes: entry('people/{id}/notes', { parent: 'people', privacy }) },
      'test',
      privacyKey(),
    ).endpoints;
  const notesWith = (privacy: PrivacyRules) => {
    const endpoints = endpointsWith(privacy);
    const tokens = { get: async () => secret, renew: async () => secret, refused: async () => {} };
    const harness = syncHarness(database.db, { url: sandbox.url, tokens }, endpoints, { respond });
    harnesses.push(harness);
    return { endpoints, harness };
  };
  const respond: NonNullable<HarnessOptions['respond']> = ({ path, query }) => {
    const parent = /\/people\/([^/]+)\/notes$/.exec(path)?.[1];
    const all = parent
      ? [1, 2, 3, 4, 5].map(
          (n) => `{"id":${n},"author":{"email":"CANARY1@example.com"},"text":"CANARY of ${parent} ${n}","pay":0.10}`,
        )
      : ['{"uid":"a"}', '{"uid":"b"}'];
    const skip = Number(query!['skip']);
    return `{"totalRecords":${all.length},"data":[${all.slice(skip, skip + 4).join(',')}]}`;
  };

  beforeAll(() => ensureMirrorTables(database.db, { endpoints: endpointsWith({}), get: () => undefined }));

  test('never has in the database what they forbid, and is unchanged at the next walk', async () => {
    const { harness } = notesWith({ text: 'drop', 'author.email': 'hash' });
    expect((await harness.sync(company)).walks).toMatchObject([{ verified: true }, { verified: true, received: 10 }]);
    expect((await harness.sync(company)).walks[1]).toMatchObject({ verified: true, received: 10, unchanged: 10, updated: 0 });
    await stampChanges(database.db);
    expect((await texts('notes'))[0]).toBe(`{"id": 1, "pay": 0.10, "author": {"email": "${hmac('CANARY1@example.com')}"}}`);
    expect(CANARY.exec(await dump(database.db))).toBeNull();
  });

  test('follows changed rules without the service', async () => {
    await notesWith({}).harness.sync(company);
    await stampChanges(database.db);
    expect(await dump(database.db)).toMatch(CANARY);
    const { endpoints, harness } = notesWith({ text: 'mask', author: 'drop' });
    await sweepFor(database.db, endpoints)();
    expect(CANARY.exec(await dump(database.db))).toBeNull();
    expect((await harness.sync(company)).walks[1]).toMatchObject({ verified: true, updated: 0, unchanged: 10 });
    expect((await texts('notes'))[0]).toBe('{"id": 1, "pay": 0.10, "text": "*************"}');
  });
});
