import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const EMPLOYEES = 400;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 20 },
  },
};

let deployment: Deployment;
let worker: TestProcess;

beforeAll(async () => {
  deployment = await Deployment.open({
    catalogue: CATALOGUE,
    sandbox: { companies: [{ name: 'Read twice', employees: EMPLOYEES }] },
  });
  [, worker] = await Promise.all([deployment.startApi(), deployment.startWorker()]);
});
afterAll(() => deployment.close());

const query = async <Row extends object>(text: string): Promise<Row[]> =>
  (await deployment.database.db.pool.query<Row>(text)).rows;
/** All that a second reading must leave as it is. */
const mirror = () =>
  query(
    "SELECT 'row' AS kind, t::text FROM mirror.employees t UNION ALL SELECT 'change', c::text FROM mirror.changes c ORDER BY 1, 2",
  );
const received = async () => (await query<{ n: number }>('SELECT count(*)::int AS n FROM muster.second_reading_records'))[0]!.n;

test('kill -9 in the middle of a second reading: the next worker reads anew, finds the same, and has changed nothing', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  await deployment.onboard(companyId);
  expect(await deployment.runEnd(companyId)).toMatchObject({ status: 'succeeded' });
  await query(`
    WITH numbered AS (SELECT id, row_number() OVER (ORDER BY id) AS n FROM mirror.employees)
    UPDATE mirror.employees e SET data = data || '{"name": "Nobody"}' FROM numbered WHERE numbered.id = e.id AND n IN (5, 390)`);
  await query('DELETE FROM mirror.employees WHERE id = (SELECT max(id) FROM mirror.employees)');
  // The feed has numbered what the walk said.
  await waitFor(async () => (await query('SELECT FROM mirror.changes')).length === EMPLOYEES);
  const before = await mirror();

  deployment.sandbox.faults.add({ kind: 'hang', when: 'before' }, { path: '/employees', skip: 10, times: Infinity });
  const { status, body } = await deployment.call('POST', `/api/companies/test/${companyId}/verify`);
  expect(status).toBe(202);
  const { id } = (body as { run: RunModel }).run;
  await waitFor(async () => (await received()) > 0);
  worker.kill('SIGKILL');
  await worker.exit;
  deployment.sandbox.faults.clear();
  expect(await mirror()).toEqual(before);

  await deployment.ageHeartbeats();
  worker = await deployment.startWorker();
  const run = await deployment.runEnd(companyId);
  expect(run).toMatchObject({
    id,
    kind: 'verify',
    status: 'succeeded',
    walks: [{ verify: { compared: EMPLOYEES, missing: 1, extra: 0, different: 2 } }],
  });
  expect(await mirror()).toEqual(before);
  expect(await received()).toBe(0);
});
