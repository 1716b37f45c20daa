import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, SILENT, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { type ForeignShape, startShape } from '../../support/foreign-shapes.js';
import { runMuster } from '../run-muster.js';

let service: ForeignShape;
let admin: AdminFixture;
let company: CompanyKey;

beforeAll(async () => {
  service = await startShape('github');
  admin = await startAdmin({ test: { ...SILENT, baseUrl: service.url } });
  company = await admin.addCompany();
});
afterAll(async () => {
  await admin.stop();
  await service.stop();
});

const tryList = (...args: string[]) =>
  runMuster(['try', ...args, '--environment', 'test', '--company', company.companyId, '--url', admin.url], {
    MUSTER_ADMIN_TOKEN: TOKEN,
  });

test('what it prints is a part of a catalogue file, with all else as comments', async () => {
  const { code, stdout, stderr } = await tryList(service.path);
  expect([code, stderr]).toEqual([0, '']);
  expect(parse(stdout)).toEqual({
    members: {
      method: 'GET',
      path: service.path,
      pager: { style: 'next-link', sizeName: 'per_page', size: 100 },
      fields: { data: 'none' },
      id: ['id'],
    },
  });
  expect(stdout).toMatch(/^# +paging +Each page names the address of the next one in the Link header\./m);
  expect(stdout).toMatch(/^# +1\. GET …\/members: 200, 30 records$/m);
  expect(stdout).not.toContain('person-');
});

test('with --json it prints one line, and with --samples a few records', async () => {
  const { code, json } = await tryList(service.path, '--json', '--samples');
  expect(code).toBe(0);
  const [tried] = json();
  expect(json()).toHaveLength(1);
  expect(tried).toMatchObject({ outcome: 'confirmed' });
  expect(tried.samples).toHaveLength(3);
});

test('constants go with every request', async () => {
  const before = service.requests.length;
  await tryList(service.path, '--query', 'role=admin', '--query', 'state=a=b');
  const asked = service.requests.slice(before);
  expect(asked.length).toBeGreaterThan(5);
  for (const request of asked) expect(request).toMatch(/role=admin&state=a%3Db/);
});

test('it exits with 1 where nothing fits, and with 2 where it cannot be understood', async () => {
  const nothing = await tryList('/api/nowhere/{company_id}');
  expect([nothing.code, nothing.stderr]).toEqual([1, 'muster: No entry was found for this list.\n']);
  expect(nothing.stdout).toMatch(/The service answered 404/);
  expect((await tryList(service.path, '--query', 'nothing')).code).toBe(2);
  expect((await tryList('//elsewhere.example/a')).code).toBe(2);
});
