import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeKeys } from '../../../src/db/tables/schema-columns.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
const seen = new Date('2026-11-24T02:00:00Z');
const row = (resource: string, position: number, more: object = {}) => ({
  resource,
  view: resource,
  isKeptWhole: false,
  path: [`key ${position}`],
  name: `key_${position}`,
  type: 'numeric' as const,
  position,
  textPosition: null,
  declared: null,
  twins: [],
  twinDue: null,
  twinAnswers: {},
  kinds: { number: 3, null: 1 },
  values: 3,
  nulls: 1,
  misfits: 0,
  converts: false,
  environment: 'test',
  firstRunId: null,
  firstSeenAt: seen,
  lastSeenAt: seen,
  ...more,
});

beforeAll(async () => {
  admin = await startAdmin();
  await writeKeys(admin.db.prisma, [
    row('employees', 2, { path: ['a.b', '"'], textPosition: 3, misfits: 2, kinds: { number: 3, string: 2 } }),
    row('employees', 1),
    row('departments', 1),
    row('employees', 1, { view: 'employees__jobs' }),
    row('employees', 9, { path: ['unnamed'], name: null, type: null, position: null }),
  ]);
});
afterAll(() => admin.stop());

test('columns are listed in the order in which they were added, page by page', async () => {
  const { json } = await admin.call('GET', '/api/schema?resource=employees');
  expect(json).toEqual({
    data: [
      {
        resource: 'employees',
        view: 'employees',
        column: 'key_1',
        path: ['key 1'],
        type: 'numeric',
        first_seen_at: seen.toISOString(),
        last_seen_at: seen.toISOString(),
        values: 3,
        nulls: 1,
        misfits: 0,
        text_column: null,
        declared: null,
        misfit_kinds: {},
        twins: [],
        catalogue: 'columns: { "key 1": numeric }',
      },
      expect.objectContaining({
        column: 'key_2',
        path: ['a.b', '"'],
        misfits: 2,
        misfit_kinds: { string: 2 },
        text_column: 'key_2__text',
      }),
      expect.objectContaining({ resource: 'employees', view: 'employees__jobs', column: 'key_1' }),
    ],
    next_cursor: null,
  });
  const first = (await admin.call('GET', '/api/schema?limit=2')).json;
  const second = (await admin.call('GET', `/api/schema?limit=2&cursor=${first.next_cursor}`)).json;
  expect([...first.data, ...second.data].map((each: { view: string; column: string }) => `${each.view} ${each.column}`)).toEqual([
    'departments key_1',
    'employees key_1',
    'employees key_2',
    'employees__jobs key_1',
  ]);
  expect(second.next_cursor).toBeNull();
});

test('a rebuild is asked for, of one list or of all, and stands in the audit', async () => {
  const one = await admin.call('POST', '/api/schema/rebuild', { resource: 'employees' });
  expect([one.status, one.json]).toEqual([202, { resources: ['employees'] }]);
  const all = await admin.call('POST', '/api/schema/rebuild');
  expect(all.json.resources).toEqual(expect.arrayContaining(['employees', 'departments']));
  expect(await admin.db.prisma.schemaResource.count({ where: { rebuildAskedAt: { not: null } } })).toBe(
    all.json.resources.length,
  );
  expect((await admin.call('GET', '/api/audit?action=schema.rebuild')).json.data).toHaveLength(2);
});

test.each([
  ['GET', '/schema?resource=No', undefined, 400, 'invalid_request'],
  ['GET', '/schema?cursor=!!', undefined, 400, 'invalid_request'],
  ['POST', '/schema/rebuild', { resource: 'nothing' }, 422, 'unknown_resource'],
] as const)('%s %s is refused', async (method, path, body, status, code) => {
  const answer = await admin.call(method, `/api${path}`, body);
  expect([answer.status, answer.json.code]).toEqual([status, code]);
});
