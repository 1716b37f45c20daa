import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';

const COMPANY = '/api/companies/{company_id}';
const CATALOGUE = {
  employees: { method: 'GET', path: `${COMPANY}/employees`, pager: { style: 'skip-take', takeName: '$take', size: 100 } },
  absences: { method: 'GET', base: 'numbers', path: `${COMPANY}/absences`, pager: { style: 'odata', size: 100 } },
  shifts: {
    method: 'GET',
    base: 'numbers',
    path: '/odata/companies/{company_id}/shifts',
    pager: { style: 'next-link', sizeName: '$top', size: 20 },
    fields: { data: 'value', next: '@odata.nextLink', total: '@odata.count' },
  },
};

let deployment: Deployment;
/** The further host: the sandbox under another address. */
let numbers: Server;
const asked: string[] = [];
let running: TestProcess[] = [];

beforeAll(async () => {
  numbers = createServer((incoming, response) => {
    asked.push(incoming.url!.replace(/\?.*/, ''));
    const { method, headers, url } = incoming;
    const onward = request(new URL(url!, deployment.sandbox.url), { method: method!, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      pipeline(answer, response, () => {});
    });
    pipeline(incoming, onward, () => {});
  });
  numbers.listen(0, '127.0.0.1');
  await once(numbers, 'listening');
  deployment = await Deployment.open({
    sandbox: { companies: [{ name: 'One', employees: 250 }] },
    catalogue: CATALOGUE,
    env: { TEST_BASE_URL_NUMBERS: `http://127.0.0.1:${(numbers.address() as AddressInfo).port}/` },
  });
});
afterAll(async () => {
  for (const each of running) each.kill('SIGTERM');
  await Promise.all(running.map(({ exit }) => exit));
  numbers.close().closeAllConnections();
  await deployment.close();
});

test('a list on a further host of the API is mirrored from there, links and second reading included', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  running = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  await deployment.onboard(companyId);
  const run = await deployment.runEnd(companyId);
  expect(run.walks.map(({ resource, verified }) => [resource, verified])).toEqual([
    ['employees', true],
    ['absences', true],
    ['shifts', true],
  ]);
  for (const resource of ['employees', 'absences', 'shifts'] as const)
    expect(await mirrored(deployment.database.db, resource, companyId)).toEqual(
      upstream(deployment.sandbox, resource, companyId),
    );
  const lists = () => new Set(asked.map((path) => path.split('/').at(-1)));
  expect(lists()).toEqual(new Set(['absences', 'shifts']));
  expect(asked.filter((path) => path.endsWith('shifts')).length).toBeGreaterThan(1);

  asked.length = 0;
  await deployment.call('POST', `/api/companies/test/${companyId}/verify`);
  const verified = await deployment.runEnd(companyId);
  expect(verified.walks.map(({ verify }) => verify)).toEqual(
    Array(3).fill(expect.objectContaining({ missing: 0, extra: 0, different: 0 })),
  );
  expect(lists()).toEqual(new Set(['absences', 'shifts']));
});

test('a base without its variable stops the start, by name', async () => {
  const { TEST_BASE_URL_NUMBERS: _, ...env } = deployment.env;
  const started = startMuster(['worker'], env);
  expect(await started.exit).toMatchObject({ code: 2 });
  expect(started.stderr).toContain('TEST_BASE_URL_NUMBERS: is missing; the list absences names "base: numbers" in the catalogue');
});
