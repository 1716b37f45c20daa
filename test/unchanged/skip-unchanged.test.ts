import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { approveHold } from '../../src/mirror/holds.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { Baseline } from '../../src/unchanged/baseline.js';
import { skipUnchanged } from '../../src/unchanged/skip-unchanged.js';
import type { Comparisons } from '../../src/walks/comparison.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

// What is left uncompared because the walk just before has proved it. A row that was edited by hand shows whether it was compared:
// only then does it get its text back.

/** What walks go by, but that the pages of the last walk do not come along with its opening, as those of a long list do not. */
const ofLongLists: Comparisons = {
  ...skipUnchanged,
  open: (db, list, pass) =>
    skipUnchanged.open(db, list, { ...pass, baseline: pass.baseline && { ...pass.baseline, pages: undefined } }),
};

describe.each([
  [false, ofLongLists],
  [true, skipUnchanged],
])('the service gives ETags: %s', (etags, comparisons) => {
  const NIGHTLY = { trigger: 'nightly', mode: 'full' } as const;
  const { employees, documents } = ENTRIES;

  let sandbox: Sandbox;
  let database: TestDatabase;
  let harness: SyncHarness;
  let otherCatalogue: SyncHarness;
  let company: CompanyKey;
  let next = 0;

  beforeAll(async () => {
    sandbox = await startSandbox({
      etags,
      companies: Array.from({ length: 32 }, (_, n) => ({ name: `C${n}`, employees: 60, documents: 35 })),
    });
    database = await testDatabase();
    harness = syncHarness(database.db, sandbox, endpointsOf({ employees }), { comparisons });
    const smaller = { ...employees, pager: { ...employees.pager, size: 9 } };
    otherCatalogue = syncHarness(database.db, sandbox, endpointsOf({ employees: smaller }), { comparisons });
  });
  afterAll(async () => {
    await harness.close();
    await otherCatalogue.close();
    await sandbox.stop();
    await database.close();
  });
  beforeEach(async () => {
    sandbox.faults.clear();
    company = await harness.onboard(sandbox.companies[next++]!.companyId);
    await harness.sync(company);
  });

  const list = () => sandbox.list(company.companyId, 'employees');
  const mirrorOf = () => mirrored(database.db, 'employees', company.companyId);
  const service = () => upstream(sandbox, 'employees', company.companyId);
  const change = (at: number, marker: string) => list().change(at, list().texts()[at]!.replace('{', `{"marker":"${marker}",`));

  /** Edits the row of a record that stays as it is upstream. */
  async function editRow(at = 33): Promise<void> {
    const { uid } = JSON.parse(list().texts()[at]!) as { uid: string };
    const { rowCount } = await database.db.pool.query(
      `UPDATE mirror.employees SET data = '{"edited": true}' WHERE company_id = $1 AND id = $2`,
      [company.companyId, uid],
    );
    expect(rowCount).toBe(1);
  }

  /** Whether the walk that follows compares the rows of records that have not changed. */
  async function comparesAll(by = harness, request: Parameters<SyncHarness['sync']>[1] = NIGHTLY): Promise<boolean> {
    await editRow();
    await by.sync(company, request);
    return !(await mirrorOf()).includes('{"edited": true}');
  }

  async function idsIn(table: 'page_snapshots' | 'page_keys'): Promise<string[]> {
    const { rows } = await database.db.pool.query<{ id: string }>(
      `SELECT id::text FROM muster.${table} WHERE company_id = $1 ORDER BY id`,
      [company.companyId],
    );
    return rows.map(({ id }) => id);
  }

  describe('after a verified walk', () => {
    test('nothing is compared nor written where nothing changed', async () => {
      const before = await idsIn('page_snapshots');
      expect((await harness.sync(company, NIGHTLY)).walks[0]).toMatchObject({
        verified: true,
        pages: 7,
        received: 60,
        inserted: 0,
        updated: 0,
        unchanged: 60,
      });
      expect(await idsIn('page_snapshots')).toEqual(before);
      expect(await comparesAll()).toBe(false);
    });

    test('of a page that changed, the records that did not are not compared, and the mirror is right', async () => {
      change(12, 'x');
      change(31, 'y');
      const [walk] = (await harness.sync(company, NIGHTLY)).walks;
      expect(walk).toMatchObject({ verified: true, updated: 2, unchanged: 58 });
      expect(await mirrorOf()).toEqual(service());
      change(32, 'z');
      expect(await comparesAll()).toBe(false);
    });

    test('of a page whose records have other texts, their keys are not written again', async () => {
      const [contents, keys] = [await idsIn('page_snapshots'), await idsIn('page_keys')];
      change(12, 'x');
      await harness.sync(company, NIGHTLY);
      // In the place of the page as it was, which no ledger refers to any more.
      expect(await idsIn('page_snapshots')).toEqual([contents[0], ...contents.slice(2), expect.any(String)]);
      expect(await idsIn('page_keys')).toEqual(keys);
      // Neither are those of a snapshot whose keys were another's.
      change(13, 'y');
      await harness.sync(company, NIGHTLY);
      expect(await idsIn('page_keys')).toEqual(keys);
    });

    test('a list that ends where one of its pages ended loses the records after it', async () => {
      list().remove(55, 5);
      const [walk] = (await harness.sync(company, NIGHTLY)).walks;
      expect(walk).toMatchObject({ verified: true, pages: 6, received: 55, deleted: 5 });
      expect(await mirrorOf()).toEqual(service());
    });

    test('who reads the row hashes of a walk whose ledger was cleared has lost the list', async () => {
      const walk = await database.db.prisma.walk.findFirstOrThrow({ where: { run: { companyId: company.companyId } } });
      const baseline = await Baseline.read(
        database.db,
        { ...company, resource: 'employees' },
        { id: walk.id, keysDigest: undefined, pages: undefined },
      );
      await database.db.prisma.walkPage.deleteMany({ where: { walkId: walk.id, page: { gte: 3 } } });
      await expect(baseline.readRowHashes()).rejects.toThrow(expect.objectContaining({ code: 'fenced' }));
    });

    test('keys that no ledger refers to are cleared', async () => {
      const before = await idsIn('page_keys');
      list().remove(12, 1);
      await harness.sync(company, NIGHTLY);
      const after = await idsIn('page_keys');
      expect(after).toHaveLength(before.length);
      expect(after.filter((id) => before.includes(id))).toEqual(before.slice(0, 1));
    });

    test('records that join at the front shift every page, and are all that is written', async () => {
      list().insert(
        0,
        list()
          .texts()[0]!
          .replace(/"uid":\s*"[^"]*"/, '"uid":"new"'),
      );
      list().remove(40, 2);
      expect((await harness.sync(company, NIGHTLY)).walks[0]).toMatchObject({
        verified: true,
        inserted: 1,
        updated: 0,
        deleted: 2,
      });
      expect(await mirrorOf()).toEqual(service());
      list().insert(
        0,
        list()
          .texts()[0]!
          .replace(/"uid":\s*"[^"]*"/, '"uid":"newer"'),
      );
      expect(await comparesAll()).toBe(false);
    });

    test('pages that share a commit each keep their own ids in the ledger', async () => {
      // Nine changed records of the first page and one new one of the second are as many as the second page holds.
      for (let at = 0; at < 9; at += 1) change(at, 'x');
      list().insert(
        12,
        list()
          .texts()[0]!
          .replace(/"uid":\s*"[^"]*"/, '"uid":"new"'),
      );
      expect((await harness.sync(company, NIGHTLY)).walks[0]).toMatchObject({
        verified: true,
        passes: 1,
        inserted: 1,
        updated: 9,
      });
      const { rows } = await database.db.pool.query<{ id: string }>(
        'SELECT DISTINCT unnest(ids) AS id FROM muster.page_keys WHERE company_id = $1 ORDER BY 1',
        [company.companyId],
      );
      const uids = list()
        .texts()
        .map((text) => (JSON.parse(text) as { uid: string }).uid);
      expect(rows.map(({ id }) => id)).toEqual(uids.toSorted());
      expect(await mirrorOf()).toEqual(service());
    });

    test('a walk in slices uses it to the end', async () => {
      await editRow();
      const { id } = await harness.sync(company, NIGHTLY, { stopAfterPages: 2 });
      for (let slice = 0; slice < 3; slice += 1) await harness.work(id, { stopAfterPages: 2 });
      expect(await harness.runs.find(id)).toMatchObject({
        status: 'succeeded',
        walks: [{ verified: true, unchanged: 60, updated: 0 }],
      });
    });

    test('a walk that uses it is the next baseline', async () => {
      for (let night = 0; night < 3; night += 1) {
        change(night, `night ${night}`);
        expect((await harness.sync(company, NIGHTLY)).walks[0]).toMatchObject({ verified: true, updated: 1 });
      }
      expect(await mirrorOf()).toEqual(service());
      expect(await comparesAll()).toBe(false);
    });
  });

  describe('everything is compared', () => {
    test('when a person asks for everything again', async () => {
      expect(await comparesAll(harness, { mode: 'full' })).toBe(true);
      expect(await mirrorOf()).toEqual(service());
    });

    test('after rows were made by hand, nothing that leaves is overlooked', async () => {
      const insert = `INSERT INTO mirror.employees (environment, company_id, id, data) VALUES ('test', $1, 'by hand', '{}')`;
      await database.db.pool.query(insert, [company.companyId]);
      await harness.sync(company, { mode: 'full' });
      for (const request of [NIGHTLY, NIGHTLY, { mode: 'full' }, NIGHTLY] as const) {
        list().remove(5, 1);
        expect((await harness.sync(company, request)).walks[0]).toMatchObject({ verified: true, deleted: 1 });
      }
      expect(await mirrorOf()).toEqual(service());
      expect((await database.db.prisma.list.findFirstOrThrow({ where: company })).records).toBe(list().size);
    });

    test('a tombstone undone by hand hides no record that leaves in the night when its own comes back', async () => {
      const text = list().texts()[7]!;
      list().remove(7, 1);
      await harness.sync(company, NIGHTLY);
      await database.db.pool.query('UPDATE mirror.employees SET deleted_at = NULL WHERE company_id = $1', [company.companyId]);
      list().insert(7, text);
      list().remove(20, 1);
      await harness.sync(company, NIGHTLY);
      expect(await mirrorOf()).toEqual(service());
    });

    test('then, also rows that no walk received are found', async () => {
      await database.db.pool.query(
        `INSERT INTO mirror.employees (environment, company_id, id, data) VALUES ('test', $1, 'by hand', '{}')`,
        [company.companyId],
      );
      expect((await harness.sync(company, NIGHTLY)).walks[0]).toMatchObject({ deleted: 0 });
      expect((await harness.sync(company, { mode: 'full' })).walks[0]).toMatchObject({ deleted: 1 });
      expect(await mirrorOf()).toEqual(service());
    });

    test('after a walk that was cancelled half-way', async () => {
      change(4, 'x');
      const { id } = await harness.sync(company, NIGHTLY, { stopAfterPages: 2 });
      await harness.runs.cancel(id);
      await harness.work(id);
      list().change(4, list().texts()[4]!.replace('"marker":"x",', ''));
      expect(await comparesAll()).toBe(true);
      expect(await mirrorOf()).toEqual(service());
    });

    test('after a walk that was not verified', async () => {
      list().insert(30, '{"name":"has no id"}');
      expect((await harness.sync(company, NIGHTLY)).walks[0]).toMatchObject({ verified: false });
      list().remove(30, 1);
      expect(await comparesAll()).toBe(true);
    });

    test('by another catalogue', async () => {
      expect(await comparesAll(otherCatalogue)).toBe(true);
    });

    test('after a rekey', async () => {
      await rekeyList(database.db, { ...company, resource: 'employees' });
      await harness.sync(company, NIGHTLY);
      expect(await mirrorOf()).toEqual(service());
    });

    test('for a company that was removed and comes back', async () => {
      await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'test', role: 'admin' }));
      expect(await idsIn('page_snapshots')).toEqual([]);
      await harness.onboard(company.companyId);
      expect((await harness.sync(company, NIGHTLY)).walks[0]).toMatchObject({ inserted: 60, verified: true });
      expect(await mirrorOf()).toEqual(service());
    });

    test('after a walk that received one record with two texts', async () => {
      const text = list().texts()[9]!;
      // Record 9 is the overlap of the first two pages: it changes between them, and is back before the next walk.
      const seen = sandbox.requests.all('/employees').length;
      const restless = syncHarness(database.db, sandbox, endpointsOf({ employees }), {
        beforeRequest: ({ query }) => (query?.['skip'] === '9' ? change(9, 'meanwhile') : undefined),
      });
      expect((await restless.sync(company, NIGHTLY)).walks[0]).toMatchObject({ verified: true, updated: 1 });
      await restless.close();
      expect(sandbox.requests.all('/employees').length).toBeGreaterThan(seen);
      list().change(9, text);
      expect(await comparesAll()).toBe(true);
      expect(await mirrorOf()).toEqual(service());
    });

    test('in a walk itself, once it has received one record with two texts', async () => {
      const text = list().texts()[9]!;
      change(9, 'before');
      const restless = syncHarness(database.db, sandbox, endpointsOf({ employees }), {
        beforeRequest: ({ query }) => (query?.['skip'] === '9' ? list().change(9, text) : undefined),
      });
      await editRow();
      await restless.sync(company, NIGHTLY);
      await restless.close();
      expect(await mirrorOf()).toEqual(service());
    });

    test('in every further pass of a walk', async () => {
      const text = list().texts()[4]!;
      change(4, 'before');
      let requests = 0;
      const growing = syncHarness(database.db, sandbox, endpointsOf({ employees }), {
        beforeRequest: ({ query }) => {
          if (query?.['skip'] !== '45' || requests++ > 0) return;
          list().change(4, text);
          list().insert(list().size, text.replace(/"uid":\s*"[^"]*"/, '"uid":"last"'));
        },
      });
      const [walk] = (await growing.sync(company, NIGHTLY)).walks;
      await growing.close();
      expect(walk).toMatchObject({ verified: true, pages: 14 });
      expect(await mirrorOf()).toEqual(service());
    });

    test('of what came back after an approved hold', async () => {
      const all = list().texts();
      list().remove(0, 60);
      await harness.sync(company, NIGHTLY);
      await approveHold(database.db, (await database.db.prisma.hold.findFirstOrThrow({ where: company })).id);
      for (const text of all) list().insert(list().size, text);
      await harness.sync(company, NIGHTLY);
      expect(await mirrorOf()).toEqual(service());
    });
  });

  test('a first walk takes over rows that were made by hand beside it', async () => {
    const { companyId } = sandbox.companies[next++]!;
    const fresh = await harness.onboard(companyId);
    const { id } = await harness.sync(fresh, {}, { stopAfterPages: 2 });
    const ids = sandbox
      .list(companyId, 'employees')
      .texts()
      .map((text) => (JSON.parse(text) as { uid: string }).uid);
    await database.db.pool.query(
      `INSERT INTO mirror.employees (environment, company_id, id, data) SELECT 'test', $1, id, '{}' FROM unnest($2::text[]) id`,
      [companyId, [ids[40], 'by hand']],
    );
    for (let slice = 0; slice < 5; slice += 1) await harness.work(id, { stopAfterPages: 2 });
    expect(await harness.runs.find(id)).toMatchObject({ walks: [{ verified: true, inserted: 59, updated: 1, deleted: 1 }] });
    expect(await mirrored(database.db, 'employees', companyId)).toEqual(upstream(sandbox, 'employees', companyId));
  });

  test('a first walk of two passes marks deleted what left between them', async () => {
    const other = await harness.onboard(sandbox.companies.at(-2)!.companyId);
    const shrinkingList = sandbox.list(other.companyId, 'employees');
    let requests = 0;
    const shrinking = syncHarness(database.db, sandbox, endpointsOf({ employees }), {
      beforeRequest: ({ query }) => (query?.['skip'] === '45' && requests++ === 0 ? shrinkingList.remove(3, 1) : undefined),
    });
    expect((await shrinking.sync(other, NIGHTLY)).walks[0]).toMatchObject({ verified: true, inserted: 60, deleted: 1 });
    await shrinking.close();
    expect(await mirrored(database.db, 'employees', other.companyId)).toEqual(upstream(sandbox, 'employees', other.companyId));
  });

  test('a token list has its last walk as baseline, too', async () => {
    const endpoints = endpointsOf({ documents });
    await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
    const tokens = syncHarness(database.db, sandbox, endpoints);
    const other = sandbox.companies.at(-1)!.companyId;
    const key = await tokens.onboard(other);
    const [first] = (await tokens.sync(key)).walks;
    const before = await database.db.pool.query('SELECT count(*)::int AS n FROM muster.page_snapshots WHERE company_id = $1', [
      other,
    ]);
    const [second] = (await tokens.sync(key, NIGHTLY)).walks;
    const after = await database.db.pool.query('SELECT count(*)::int AS n FROM muster.page_snapshots WHERE company_id = $1', [
      other,
    ]);
    expect(first).toMatchObject({ verified: true, received: 35 });
    expect(second).toMatchObject({ verified: true, received: 35, unchanged: 35 });
    expect(after.rows).toEqual(before.rows);
    await tokens.close();
  });
});
