import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { CompanyKey } from '../../src/core/company.js';
import { MusterError } from '../../src/core/errors.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import type { Resource } from '../../src/sandbox/company-spec.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { askedFor, syncHarness } from '../walks/sync-harness.js';
import { FAULTS, seedFault } from './fault-seeds.js';

const SIZES = { employees: 137, departments: 23, absences: 41, documents: 77 };
const NAMES = ['One', 'Two', 'Changing', 'Held', 'Behind 400', 'Behind 401'];
const NOTHING = { missing: 0, extra: 0, different: 0, changed_since: 0, held: 0, sample: [] };

let sandbox: Sandbox;
let database: TestDatabase;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: NAMES.map((name) => ({ name, ...SIZES })), maxTake: 50 });
  database = await testDatabase();
  await ensureMirrorTables(database.db, validateCatalogue(ENTRIES, 'test'));
});

afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

const harnessOf = (options = {}) => syncHarness(database.db, sandbox, endpointsOf(ENTRIES), options);
const companyId = (name: string) => sandbox.companies.find((each) => each.name === name)!.companyId;
const found = (run: RunModel, resource: string) => run.walks.find((walk) => walk.resource === resource)!.verify!;

/** Everything that a second reading must leave as it is. */
async function everything(company: CompanyKey): Promise<unknown> {
  const of = 'environment = $1 AND company_id = $2::uuid';
  const tables = [
    ...Object.keys(ENTRIES).map((resource) => `SELECT '${resource}', r::text FROM mirror."${resource}" r WHERE ${of}`),
    `SELECT 'lists', r::text FROM muster.lists r WHERE ${of}`,
    `SELECT 'companies', r::text FROM mirror.companies r WHERE ${of}`,
    `SELECT 'holds', r::text FROM muster.holds r WHERE ${of}`,
    `SELECT 'batches', r::text FROM muster.change_batches r WHERE ${of}`,
    `SELECT 'barriers', r::text FROM muster.barriers r WHERE ${of}`,
    `SELECT 'snapshots', r::text FROM muster.page_snapshots r WHERE ${of}`,
    `SELECT 'keys', r::text FROM muster.page_keys r WHERE ${of}`,
    `SELECT 'walks', r::text FROM muster.walks r WHERE ${of} AND kind = 'sync'`,
    `SELECT 'runs', r::text FROM muster.runs r WHERE ${of} AND kind = 'sync'`,
  ];
  const { rows } = await database.db.pool.query(`${tables.join(' UNION ALL ')} ORDER BY 1, 2`, [
    company.environment,
    company.companyId,
  ]);
  return rows;
}

describe('a second reading', () => {
  test('finds nothing in an undisturbed mirror, and changes nothing', async () => {
    const harness = harnessOf();
    const company = await harness.onboard(companyId('One'));
    await harness.sync(company);
    await harness.sync(company);
    const before = await everything(company);

    const run = await harness.verify(company);

    expect(run).toMatchObject({ status: 'succeeded', kind: 'verify', trigger: 'verify' });
    for (const walk of run.walks) {
      const compared = SIZES[walk.resource as keyof typeof SIZES];
      expect(walk).toMatchObject({ status: 'succeeded', verified: false, verify: { ...NOTHING, compared } });
      expect(walk.verify!.as_of).not.toBeNull();
    }
    expect(await everything(company)).toEqual(before);
    const { rows } = await database.db.pool.query('SELECT FROM muster.second_reading_records');
    expect(rows).toHaveLength(0);
    await harness.close();
  });

  test('finds each fault, whatever else changes upstream', async () => {
    const harness = harnessOf();
    const [one, two] = [{ environment: 'test', companyId: companyId('One') } as const, await harness.onboard(companyId('Two'))];
    await harness.sync(two);
    const expected = [];
    for (const [n, resource] of Object.keys(ENTRIES).entries()) {
      const { rows } = await database.db.pool.query<{ id: string }>(
        `SELECT id FROM mirror."${resource}" WHERE company_id = $1 AND deleted_at IS NULL ORDER BY id`,
        [one.companyId],
      );
      for (const [k, kind] of FAULTS.entries()) {
        const isNew = kind === 'added' || kind === 'revived';
        const id = isNew ? `made-up-${kind}` : rows[k * 2 + n]!.id;
        expected.push(...(await seedFault(database.db, kind, { company: one, other: two, resource, id })));
      }
    }

    for (const company of [one, two]) {
      const run = await harness.verify(company);
      for (const { resource, verify } of run.walks) {
        const own = expected.filter((fault) => fault.resource === resource && fault.company.companyId === company.companyId);
        const count = (kind: string) => own.filter((fault) => fault.kind === kind).length;
        expect(verify, resource).toMatchObject({
          missing: count('missing'),
          extra: count('extra'),
          different: count('different'),
          changed_since: 0,
        });
        expect(verify!.sample.map(({ id, kind }) => `${kind} ${id}`).toSorted()).toEqual(
          own.map(({ id, kind }) => `${kind} ${id}`).toSorted(),
        );
        for (const { kind, members } of verify!.sample) if (kind === 'different') expect(members!.length).toBeGreaterThan(0);
      }
    }
    await harness.close();
  });

  test('takes what changed upstream since the walk for no fault, before, while and after it reads', async () => {
    const id = companyId('Changing');
    let changes = 0;
    const harness = harnessOf({
      beforeRequest: () => {
        if (changes > 0) sandbox.mutate(changes);
      },
    });
    const company = await harness.onboard(id);
    await harness.sync(company);
    sandbox.mutate(250);
    changes = 3;
    const run = await harness.verify(company);
    for (const walk of run.walks)
      expect(walk.verify, walk.resource).toMatchObject({ missing: 0, extra: 0, different: 0, sample: [] });
    expect(run.walks.reduce((sum, { verify }) => sum + verify!.changed_since, 0)).toBeGreaterThan(10);

    // A damaged row is found beside them, even where its record was changed upstream, too.
    changes = 0;
    await harness.sync(company, { mode: 'full' });
    const list = sandbox.list(id, 'employees');
    const text = JSON.parse(list.texts()[0]!) as { uid?: string; id?: string };
    const victim = String(text.uid ?? text.id);
    const [fault] = await seedFault(database.db, 'edited', { company, other: company, resource: 'employees', id: victim });
    list.change(0);
    expect(found(await harness.verify(company, { resources: ['employees'] }), 'employees')).toMatchObject({
      different: 1,
      sample: [{ id: fault!.id, kind: 'different' }],
    });
    await harness.close();
  });
});

test('compares what privacy rules have left', async () => {
  const privacy = { email: 'mask', 'address.street': 'drop', salary: 'drop' };
  const harness = syncHarness(database.db, sandbox, endpointsOf({ employees: { ...ENTRIES.employees, privacy } }));
  const company = await harness.onboard(companyId('Held'));
  await harness.sync(company);
  expect(found(await harness.verify(company), 'employees')).toMatchObject({
    ...NOTHING,
    compared: sandbox.records(company.companyId, 'employees').length,
  });
  const { rows } = await database.db.pool.query<{ id: string }>(
    'SELECT min(id) AS id FROM mirror.employees WHERE company_id = $1',
    [company.companyId],
  );
  await seedFault(database.db, 'digits', { company, other: company, resource: 'employees', id: rows[0]!.id });
  expect(found(await harness.verify(company), 'employees')).toMatchObject({ different: 1, changed_since: 0 });
  await harness.close();
});

test.each([
  [400, 'succeeded'],
  [401, 'failed'],
])(
  'a page behind the last one that is refused with %i is none, unless the token or the role is refused',
  async (status, ended) => {
    const refuse = (request: ApiRequest) => {
      if (askedFor(request).skip >= sandbox.records(company.companyId, 'employees').length)
        throw new MusterError('service_refused', 'no', { details: { status } });
    };
    const harness = harnessOf();
    const company = await harness.onboard(companyId(`Behind ${status}`));
    await harness.sync(company, { resources: ['employees'] });
    const refusing = harnessOf({ beforeRequest: refuse });
    expect(await refusing.verify(company, { resources: ['employees'] })).toMatchObject({
      status: ended,
      walks: [{ status: ended }],
    });
    await harness.close();
    await refusing.close();
  },
);

test('reads a list in each paging style, whole, and without asking by ETag', async () => {
  const catalogue = loadCatalogue(new URL('../../examples/catalogue.yaml', import.meta.url).pathname);
  await ensureMirrorTables(database.db, catalogue);
  const styles = await startSandbox({
    companies: [{ name: 'Styles', employees: 137, positions: 137, departments: 137 }],
    unstable: ['employees'],
    etags: true,
  });
  const asked: (string | undefined)[] = [];
  const harness = syncHarness(database.db, styles, catalogue.endpoints, {
    beforeRequest: ({ ifNoneMatch }) => void asked.push(ifNoneMatch),
  });
  const company = await harness.onboard(styles.companies[0]!.companyId);
  await harness.sync(company);
  asked.length = 0;
  const run = await harness.verify(company);
  expect(run.walks).toHaveLength(catalogue.endpoints.length);
  for (const { resource, verify } of run.walks) {
    const compared = styles.records(company.companyId, resource as Resource).length;
    // A list in no stable order may show a record twice and another never, however often it is read.
    const whole = resource === 'employees' ? {} : { compared };
    expect(verify, resource).toMatchObject({ missing: 0, extra: 0, different: 0, ...whole });
  }
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.every((etag) => etag === undefined)).toBe(true);
  await harness.close();
  await styles.stop();
});
