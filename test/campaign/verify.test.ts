import { afterAll, beforeAll, expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { randomOf } from '../pagers/shifting-list.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { FAULTS, type SeededFault, seedFault } from '../verify/fault-seeds.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { syncHarness } from '../walks/sync-harness.js';
import { shareOf } from './share.js';

// Verify finds each of 1,000 seeded faults while records change upstream, and nothing in 1,000 mirrors that nobody has touched, while records
// change, join and leave between and within its requests. `FIRST_SEED` replays one.

const MIRRORS = shareOf(1_000);
const FAULTS_IN_ALL = shareOf(1_000);
const FAULTS_A_COMPANY = 10;
const COMPANIES_AT_ONCE = 50;
const FIRST = Number(process.env.FIRST_SEED ?? 1);
const LISTS = ['employees', 'departments', 'documents'] as const;
const { employees, departments, documents } = ENTRIES;
const CATALOGUE = { employees, departments, documents };

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  await ensureMirrorTables(database.db, validateCatalogue(CATALOGUE, 'test'));
});
afterAll(() => database.close());

/** Companies with a mirror that was synced; `change` is called before each request from then on. */
async function mirroredCompanies(seed: number, count: number, change: (sandbox: Sandbox) => void) {
  const companies = Array.from({ length: count }, (_, n) => ({
    name: `${seed}-${n}`,
    employees: 35,
    departments: 8,
    documents: 24,
  }));
  const sandbox = await startSandbox({ companies, seed });
  let moves = false;
  const harness = syncHarness(database.db, sandbox, endpointsOf(CATALOGUE), {
    beforeRequest: () => {
      if (moves) change(sandbox);
    },
  });
  const keys: CompanyKey[] = [];
  for (const { companyId } of sandbox.companies) {
    await database.db.prisma.connection.deleteMany({ where: { companyId } });
    await database.db.prisma.company.deleteMany({ where: { companyId } });
    keys.push(await harness.onboard(companyId));
  }
  for (const company of keys) expect(await harness.sync(company)).toMatchObject({ status: 'succeeded' });
  moves = true;
  return {
    sandbox,
    harness,
    companies: keys,
    async close() {
      await harness.close();
      await sandbox.stop();
      for (const resource of LISTS) await database.db.pool.query(`DELETE FROM mirror."${resource}"`);
      await database.db.pool.query('DELETE FROM muster.connections');
    },
  };
}

test('finds nothing in mirrors that nobody has touched, while the service changes', async () => {
  let since = 0;
  for (let done = 0, seed = FIRST; done < MIRRORS; done += COMPANIES_AT_ONCE, seed += 1) {
    const count = Math.min(COMPANIES_AT_ONCE, MIRRORS - done);
    const world = await mirroredCompanies(seed, count, (sandbox) => sandbox.mutate(2));
    world.sandbox.mutate(20 * count);
    for (const company of world.companies) {
      const run = await world.harness.verify(company);
      expect(run, `seed ${seed}`).toMatchObject({ status: 'succeeded' });
      for (const { resource, verify } of run.walks) {
        expect(verify, `${resource}, seed ${seed}`).toMatchObject({ missing: 0, extra: 0, different: 0, sample: [] });
        since += verify!.changed_since;
      }
    }
    await world.close();
  }
  // The service did change.
  expect(since).toBeGreaterThan(MIRRORS);
});

test('finds each seeded fault, while records change', async () => {
  let seeded = 0;
  const kinds = new Set<string>();
  for (let seed = FIRST; seeded < FAULTS_IN_ALL; seed += 1) {
    const random = randomOf(seed);
    const count = Math.max(2, Math.min(COMPANIES_AT_ONCE, Math.ceil((FAULTS_IN_ALL - seeded) / FAULTS_A_COMPANY)));
    // Of a record that leaves, the mirror may lack the row. So records only change here.
    const world = await mirroredCompanies(seed + 100_000, count, (sandbox) => {
      const company = sandbox.companies[random(sandbox.companies.length)]!;
      const list = sandbox.list(company.companyId, LISTS[random(LISTS.length)]!);
      list.change(random(list.size));
    });
    const expected: SeededFault[] = [];
    for (const [n, company] of world.companies.entries()) {
      const taken = new Set<string>();
      for (let k = 0; k < FAULTS_A_COMPANY && seeded < FAULTS_IN_ALL; k += 1, seeded += 1) {
        const resource = LISTS[random(LISTS.length)]!;
        const kind = FAULTS[random(FAULTS.length)]!;
        kinds.add(kind);
        // Rows that came here by a swap are somebody else's faults already.
        const { rows } = await database.db.pool.query<{ id: string }>(
          `SELECT t.id FROM mirror."${resource}" t WHERE t.company_id = $1 AND t.deleted_at IS NULL ORDER BY t.id`,
          [company.companyId],
        );
        const strange = new Set(expected.filter((fault) => fault.resource === resource).map(({ id }) => id));
        const free = rows.map(({ id }) => id).filter((id) => !strange.has(id) && !taken.has(`${resource} ${id}`));
        const isNew = kind === 'added' || kind === 'revived';
        const id = isNew ? `made up ${k}` : free[random(free.length)]!;
        taken.add(`${resource} ${id}`);
        const other = world.companies[(n + 1) % world.companies.length]!;
        expected.push(...(await seedFault(database.db, kind, { company, other, resource, id })));
      }
    }
    for (const company of world.companies) {
      const run = await world.harness.verify(company);
      for (const { resource, verify } of run.walks) {
        const own = expected.filter((fault) => fault.resource === resource && fault.company.companyId === company.companyId);
        const of = (kind: string) =>
          own
            .filter((fault) => fault.kind === kind)
            .map(({ id }) => id)
            .toSorted();
        const what = `${resource} of ${company.companyId}, seed ${seed}`;
        for (const kind of ['missing', 'extra', 'different'] as const) {
          expect(verify![kind], `${kind} in ${what}`).toBe(of(kind).length);
          const sample = verify!.sample.filter((fault) => fault.kind === kind).map((fault) => fault.id);
          if (of(kind).length <= 10) expect(sample.toSorted(), `${kind} in ${what}`).toEqual(of(kind));
        }
      }
    }
    await world.close();
  }
  expect(kinds.size).toBeGreaterThan(FAULTS.length / 2);
});
