import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Endpoint, nightlyLists, scheduledLists, withParents } from '../../src/catalogue/endpoint.js';
import { fingerprint } from '../../src/catalogue/fingerprint.js';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { FaultsError } from '../../src/core/errors.js';

const folder = mkdtempSync(join(tmpdir(), 'catalogue-'));
afterAll(() => rmSync(folder, { recursive: true }));

function loadText(text: string, name = 'catalogue.yaml') {
  const path = join(folder, name);
  writeFileSync(path, text);
  return loadCatalogue(path);
}

const PATH = '/api/companies/{company_id}/absences';
const ENTRY = { method: 'GET', path: PATH, pager: { style: 'skip-take', size: 5 } };

function faultsOf(input: unknown): Record<string, string> {
  try {
    validateCatalogue(input, 'test');
  } catch (error) {
    if (!(error instanceof FaultsError)) throw error;
    expect(error.code).toBe('invalid_catalogue');
    return Object.fromEntries(error.faults.map(({ where, problem }) => [where, problem]));
  }
  return {};
}

test('a list may have a schedule of its own; the others are walked every night, and each with its parent', () => {
  const child = { ...ENTRY, path: '/api/companies/{company_id}/employees/{id}/absences', parent: 'employees' };
  const scheduled = (schedule: string) => ({ ...ENTRY, schedule });
  const catalogue = validateCatalogue(
    { absences: { ...child, schedule: '0 3 * * 0' }, employees: scheduled('*/10 * * * *'), notes: ENTRY },
    'a test',
  );
  expect(scheduledLists(catalogue)).toEqual([
    { resource: 'employees', schedule: '*/10 * * * *' },
    { resource: 'absences', schedule: '0 3 * * 0' },
  ]);
  expect(nightlyLists(catalogue)).toEqual(['notes']);
  expect(withParents(catalogue, ['absences'])).toEqual(['employees', 'absences']);
  expect(withParents(catalogue, ['notes', 'employees'])).toEqual(['employees', 'notes']);
});

describe('names of views', () => {
  const kept = (name: string, list: string) =>
    `needs the name ${name}, which is kept for the views and functions of ${list}; choose another`;

  test.each([
    ['employees_history', 'employees', 'employees_history'],
    ['employees_changes', 'employees', 'employees_changes'],
    ['employees_as_of', 'employees', 'employees_as_of'],
    ['employees_as_of_seq', 'employees', 'employees_as_of_seq'],
    ['employees__jobs', 'employees', 'employees__jobs'],
    ['employees__anything__at_all', 'employees', 'employees__anything__at_all'],
    ['employees_', 'employees', 'employees__history'],
    ['a_history', 'a', 'a_history'],
  ])('a list %s is refused next to %s, whose view or function has the name %s', (resource, list, name) => {
    expect(faultsOf({ [resource]: ENTRY, [list]: ENTRY })).toEqual({ [resource]: kept(name, list) });
    expect(faultsOf({ [list]: ENTRY, [resource]: ENTRY })).toEqual({ [resource]: kept(name, list) });
    expect(faultsOf({ [resource]: ENTRY })).toEqual({});
  });

  test.each([
    'employees_archive',
    'employees_changed',
    'employees_history2',
    'employees_as',
    'employees2',
    'my_employees__x',
    'schema',
  ])('a list %s is not', (resource) => expect(faultsOf({ employees: ENTRY, [resource]: ENTRY })).toEqual({}));

  test.each(['companies', 'feed', 'lists', 'columns', 'changes', 'as_of_limits', 'require_kept'])(
    'a list %s is refused alone',
    (resource) => expect(faultsOf({ [resource]: ENTRY })).toEqual({ [resource]: expect.stringContaining('a table of its own') }),
  );
});

describe('loadCatalogue', () => {
  test('has employees and departments built in', () => {
    const { endpoints, get } = loadCatalogue();
    expect(endpoints.map(({ resource }) => resource)).toEqual(['employees', 'departments']);
    expect(get('employees')).toEqual({
      resource: 'employees',
      method: 'GET',
      path: '/api/companies/{company_id}/employees',
      pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 500 },
      id: ['uid', 'id'],
      envelope: '',
      order: 'stable',
      etag: 'strong',
      deleteGuard: { share: 0.2, rows: 10 },
    });
    expect(get('departments')).toMatchObject({ method: 'POST', pager: { in: 'body', skipName: 'skip', takeName: 'take' } });
    expect(get('absences')).toBeUndefined();
  });

  test('says in docs/configuration.md what is built in', () => {
    const doc = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
    const written = /```yaml\n([^`]*)```/.exec(doc)?.[1] ?? '';
    expect(validateCatalogue(parse(written), 'the documentation').endpoints).toEqual(loadCatalogue().endpoints);
  });

  test('takes a type of two numbers without quotes, too', () => {
    const entry = (columns: string) => `a:\n  method: GET\n  path: ${PATH}\n  pager: { style: odata, size: 5 }\n  ${columns}`;
    const expected = { amount: 'numeric(12,2)', 'pay.bonus': 'numeric(38,38)', left: 'date' };
    for (const columns of [
      'columns: { amount: numeric(12,2), pay.bonus: numeric( 38, 38 ), left: date }',
      'columns: { amount: "numeric(12,2)", pay.bonus: "numeric(38,38)", left: date }',
      'columns:\n    amount: numeric(12,2) # two digits\n    pay.bonus: numeric(38,38)\n    left: date',
    ])
      expect(loadText(entry(columns)).get('a')?.columns).toEqual(expected);
    const json = JSON.stringify({ a: { ...ENTRY, columns: expected } });
    expect(loadText(json, 'columns.json').get('a')?.columns).toEqual(expected);
  });

  test('replaces the built-in catalogue by a YAML file, and fills in the defaults', () => {
    const { endpoints } = loadText(`
absences:
  method: GET
  path: ${PATH}
  pager: { style: odata, size: 200 }
documents:
  method: POST
  path: /api/v2.0/companies/{company_id}/documents/list
  pager: { style: continuation, size: 200 }
  envelope: value
  order: unstable
  deleteGuard: { share: 0.5 }
`);
    expect(endpoints).toMatchObject([
      { resource: 'absences', pager: { style: 'odata', in: 'query', skipName: '$skip', takeName: '$top', size: 200 } },
      {
        resource: 'documents',
        pager: { style: 'continuation', in: 'body', tokenName: 'continuationToken', sizeName: 'pageSize' },
        envelope: 'value',
        order: 'unstable',
        deleteGuard: { share: 0.5, rows: 10 },
      },
    ]);
  });

  test('reads JSON, tabs and all', () => {
    expect(loadText(JSON.stringify({ absences: ENTRY }, null, '\t'), 'catalogue.json').get('absences')?.pager.size).toBe(5);
  });

  test('walks parents before children', () => {
    const child = { ...ENTRY, path: '/c/{company_id}/employees/{id}/notes', parent: 'employees' };
    const { endpoints } = validateCatalogue({ notes: child, employees: ENTRY, absences: ENTRY }, 'test');
    expect(endpoints.map(({ resource }) => resource)).toEqual(['employees', 'absences', 'notes']);
  });

  test('keeps which members refer to which list, and walks on as before', () => {
    const references = { managerId: 'employees', 'jobs.departmentId': 'departments' };
    const { endpoints } = validateCatalogue({ employees: { ...ENTRY, references }, departments: ENTRY }, 'test');
    expect(endpoints[0]!.references).toEqual(references);
    expect(endpoints[1]).not.toHaveProperty('references');
    const [without] = validateCatalogue({ employees: ENTRY }, 'test').endpoints;
    expect(fingerprint(endpoints[0]!)).toBe(fingerprint(without!));
  });

  test.each(['', '[]', 'just text', '{}', 'a: 1\na: 2', 'a: [1'])('refuses the file %j', (text) => {
    expect(() => loadText(text)).toThrow(FaultsError);
  });

  test('names a file that it cannot read', () => {
    expect(() => loadCatalogue(join(folder, 'nowhere.yaml'))).toThrow(/nowhere\.yaml cannot be read/);
  });
});

describe('a wrong catalogue', () => {
  test('is told every fault at once, each with its place and an example', () => {
    const input = {
      Absences: { metod: 'GET', path: 'api', pager: { style: 'skip-tak', size: 5 } },
      companies: { ...ENTRY, pager: { style: 'odata', in: 'body', size: 0, takename: 'x' }, deleteGuard: { share: 2, row: 1 } },
      docs: { ...ENTRY, pager: { style: 'continuation', in: 'body', size: 10_001 }, envelope: 'none', id: [] },
    };
    expect(Object.keys(faultsOf(input)).toSorted()).toEqual(
      [
        'Absences',
        'Absences.method',
        'Absences.metod',
        'Absences.path',
        'Absences.pager.style',
        'companies',
        'companies.pager.in',
        'companies.pager.size',
        'companies.pager.takename',
        'companies.deleteGuard.share',
        'companies.deleteGuard.row',
        'docs.pager.in',
        'docs.pager.size',
        'docs.envelope',
        'docs.id',
      ].toSorted(),
    );
    expect(() => validateCatalogue(input, 'x.yaml')).toThrow(/x\.yaml.*\n {2}Absences\.method: .*for example: GET/);
  });

  test('names the id that cannot work, and what to write', () => {
    const faults = faultsOf({ absences: { ...ENTRY, id: ['a..b', ['x'], ['x', 'x'], ''] } });
    expect(faults).toEqual({
      'absences.id[0]': expect.stringMatching(/^must not be a\.\.b, a dot path with an empty part/),
      'absences.id[1]': expect.stringContaining('two members or more'),
      'absences.id[2]': 'must not list x twice',
      'absences.id[3]': expect.stringContaining('must not be empty'),
    });
  });

  test.each(['0 */4 * *', 'H 2 * * *', '61 * * * *', '0 0 31 2 *', 600, ''])(
    'is told of a schedule that is none: %j',
    (schedule) => {
      expect(faultsOf({ absences: { ...ENTRY, schedule } })).toEqual({
        'absences.schedule': expect.stringContaining(
          'must be five fields of cron: minute, hour, day of month, month, day of week',
        ),
      });
    },
  );

  test('is told of rules on its ids beside other faults of them', () => {
    const change = { id: ['', ['a.b', 'c']], privacy: { 'a.b': 'mask', c: 'drop', d: 'drop' } };
    expect(Object.keys(faultsOf({ absences: { ...ENTRY, ...change } })).toSorted()).toEqual([
      'absences.id[0]',
      'absences.privacy.a.b',
      'absences.privacy.c',
    ]);
    expect(Object.keys(faultsOf({ absences: { ...ENTRY, privacy: { uid: 'mask' } } }))).toEqual(['absences.privacy.uid']);
  });

  test('is asked what it meant', () => {
    const faults = faultsOf({ absences: { ...ENTRY, evelope: 'value', pager: { style: 'skip-take', size: 5, takename: 'x' } } });
    expect(faults['absences.evelope']).toContain('did you mean envelope?');
    expect(faults['absences.pager.takename']).toContain('did you mean takeName?');
  });

  test.each<[string, string, object]>([
    ['a base in capitals', 'absences.base', { base: 'Numbers' }],
    ['a base that is an address', 'absences.base', { base: 'https://numbers.example.com' }],
    ['a path without company', 'absences.path', { path: '/api/absences' }],
    ['a path to another host', 'absences.path', { path: '//evil.example.com/{company_id}' }],
    ['a path that climbs', 'absences.path', { path: '/api/{company_id}/../x' }],
    ['a path with a query', 'absences.path', { path: '/api/{company_id}?x=1' }],
    ['a placeholder twice', 'absences.path', { path: '/api/{company_id}/x/{company_id}' }],
    ['a placeholder in a constant', 'absences.query.company', { query: { company: '{company_id}' } }],
    ['a placeholder within a body', 'absences.body.filter', { method: 'POST', body: { filter: [{ of: '{id}' }] } }],
    ['a next page that is nowhere', 'absences.fields.next', { pager: { style: 'next-link', size: 5 }, fields: { next: 'none' } }],
    ['two values at one place', 'absences.fields.hasNext', { fields: { total: 'meta.more', hasNext: 'meta.more' } }],
    ['data in a bare array', 'absences.fields.data', { envelope: 'none', fields: { data: 'items' } }],
    ['a bare array in an envelope', 'absences.envelope', { envelope: 'value', fields: { data: 'none' } }],
    ['a host with a scheme', 'absences.pager.hosts[1]', { pager: { style: 'next-link', size: 5, hosts: ['a', 'https://b'] } }],
    ['a host with a path', 'absences.pager.hosts[0]', { pager: { style: 'next-link', size: 5, hosts: ['b.example.com/v1'] } }],
    ['a host with a user', 'absences.pager.hosts[0]', { pager: { style: 'next-link', size: 5, hosts: ['a@b.example.com'] } }],
    ['any host', 'absences.pager.hosts[0]', { pager: { style: 'next-link', size: 5, hosts: ['*.example.com'] } }],
    ['a host with no port', 'absences.pager.hosts[0]', { pager: { style: 'next-link', size: 5, hosts: ['b.example.com:http'] } }],
    ['a host that is empty', 'absences.pager.hosts[0]', { pager: { style: 'next-link', size: 5, hosts: [''] } }],
    ['no hosts', 'absences.pager.hosts', { pager: { style: 'next-link', size: 5, hosts: [] } }],
    ['one host', 'absences.pager.hosts', { pager: { style: 'next-link', size: 5, hosts: 'b.example.com' } }],
    ['hosts of a style without links', 'absences.pager.hosts', { pager: { style: 'continuation', size: 5, hosts: ['b'] } }],
    ['an unknown placeholder', 'absences.path', { path: '/api/{company_id}/{year}' }],
    ['{id} without parent', 'absences.path', { path: '/api/{company_id}/{id}' }],
    ['a parent without {id}', 'absences.path', { parent: 'employees' }],
    ['an unknown parent', 'absences.parent', { parent: 'employes', path: '/api/{company_id}/{id}' }],
    ['itself as parent', 'absences.parent', { parent: 'absences', path: '/api/{company_id}/{id}' }],
    ['a parent that has one', 'absences.parent', { parent: 'notes', path: '/api/{company_id}/{id}' }],
    ['an id without a name', 'absences.id[1]', { id: ['uid', ''] }],
    ['an id of spaces', 'absences.id[0]', { id: ['  '] }],
    ['an id at a path with an empty part', 'absences.id[0]', { id: ['attributes..id'] }],
    ['an id at a path that ends in a dot', 'absences.id[0]', { id: ['attributes.'] }],
    ['an id at an endless path', 'absences.id[0]', { id: ['a.b.c.d.e.f.g.h.i'] }],
    ['an id that is a number', 'absences.id[0]', { id: [7] }],
    ['several members that are one', 'absences.id[1]', { id: ['uid', ['userId']] }],
    ['several members that are none', 'absences.id[0]', { id: [[]] }],
    ['several members with an empty name', 'absences.id[0]', { id: [['userId', '']] }],
    ['several members with a broken path', 'absences.id[0]', { id: [['userId', '.date']] }],
    ['one member twice', 'absences.id[0]', { id: [['userId', 'userId']] }],
    ['members within members', 'absences.id[0]', { id: [['userId', ['a', 'b']]] }],
    ['several members as a text', 'absences.id[0]', { id: ['[userId, startDate]'] }],
    ['a name that objects have by themselves', 'absences.id[0]', { id: ['__proto__.id'] }],
    ['an id that cannot be stored', 'absences.id[0]', { id: ['a\0'] }],
    ['an id that is no list', 'absences.id', { id: 'uid' }],
    [
      'an id within a member that is dropped',
      'absences.privacy.attributes',
      { id: ['attributes.id'], privacy: { attributes: 'drop' } },
    ],
    ['a masked part of an id', 'absences.privacy.userId', { id: [['userId', 'start.date']], privacy: { userId: 'mask' } }],
    [
      'a masked path of an id',
      'absences.privacy.start.date',
      { id: [['userId', 'start.date']], privacy: { 'start.date': 'mask' } },
    ],
    ['a column of no type', 'absences.columns.amount', { columns: { amount: 'money' } }],
    ['a column of a type in capitals', 'absences.columns.amount', { columns: { amount: 'NUMERIC' } }],
    ['a column of a null type', 'absences.columns.amount', { columns: { amount: null } }],
    ['a column of no digits', 'absences.columns.amount', { columns: { amount: 'numeric(0,0)' } }],
    ['a column of too many digits', 'absences.columns.amount', { columns: { amount: 'numeric(39,2)' } }],
    ['a column of more decimals than digits', 'absences.columns.amount', { columns: { amount: 'numeric(2,3)' } }],
    ['a column of digits alone', 'absences.columns.amount', { columns: { amount: 'numeric(12)' } }],
    ['a text of so many letters', 'absences.columns.name', { columns: { name: 'text(3)' } }],
    ['a column at a path with an empty part', 'absences.columns.a..b', { columns: { 'a..b': 'date' } }],
    ['a column without a name', 'absences.columns.', { columns: { '': 'date' } }],
    ['a column within a text', 'absences.columns.address.street', { columns: { 'address.street': 'date', address: 'text' } }],
    ['a column within what is kept whole', 'absences.columns.a.b.c', { columns: { a: 'jsonb', 'a.b.c': 'date' } }],
    ['a name that objects have', 'absences.columns.a.__proto__', { columns: { 'a.__proto__': 'date' } }],
    ['columns that are no map', 'absences.columns', { columns: ['date'] }],
    ['a reference to no list', 'absences.references.departmentId', { references: { departmentId: 'department' } }],
    ['a reference to a number', 'absences.references.departmentId', { references: { departmentId: 7 } }],
    ['references that are a list', 'absences.references', { references: ['departmentId'] }],
    ['a reference at a path with an empty part', 'absences.references.manager.', { references: { 'manager.': 'absences' } }],
    ['a reference without a name', 'absences.references.', { references: { '': 'absences' } }],
    [
      'a reference whose values are hashed',
      'absences.references.manager.id',
      { references: { 'manager.id': 'absences' }, privacy: { manager: 'hash' } },
    ],
    ['no page size', 'absences.pager.size', { pager: { style: 'odata' } }],
    ['half a record as page size', 'absences.pager.size', { pager: { style: 'odata', size: 1.5 } }],
    ['one name for two parameters', 'absences.pager.takeName', { pager: { style: 'skip-take', takeName: 'skip', size: 5 } }],
    ['no pager', 'absences.pager', { pager: undefined }],
    ['another order', 'absences.order', { order: 'random' }],
    ['an empty envelope', 'absences.envelope', { envelope: '' }],
    ['an unknown style', 'absences.pager.style', { pager: { style: 'pages', size: 5 } }],
    ['a page number in no place', 'absences.pager.in', { pager: { style: 'page-number', in: 'header', size: 5 } }],
    ['a first page that is neither 0 nor 1', 'absences.pager.first', { pager: { style: 'page-number', first: 2, size: 5 } }],
    ['a first position that is neither 0 nor 1', 'absences.pager.first', { pager: { style: 'skip-take', first: 2, size: 5 } }],
    ['links in a body', 'absences.pager.in', { pager: { style: 'next-link', in: 'body', size: 5 } }],
    ['links that are posted', 'absences.method', { method: 'POST', pager: { style: 'next-link', size: 5 } }],
    ['a body of a GET', 'absences.body', { body: { active: true } }],
    ['a constant that the pager sets', 'absences.query.skip', { query: { skip: 5 } }],
    ['constants that are no map', 'absences.query', { query: 'expand=department' }],
    ['a constant that is no parameter', 'absences.query.expand', { query: { expand: ['department'] } }],
    ['an unknown field', 'absences.fields.count', { fields: { count: 'total' } }],
    ['a place that is none', 'absences.fields.total', { fields: { total: 'header X Total' } }],
    ['a last record elsewhere', 'absences.fields.total', { fields: { total: 'last id' } }],
    ['a next page of a style without', 'absences.fields.next', { fields: { next: 'next' } }],
    ['members of a bare array', 'absences.fields', { fields: { data: 'none', total: 'count' } }],
    [
      'a token in a bare array',
      'absences.fields.data',
      { pager: { style: 'continuation', size: 5 }, fields: { data: 'none', next: 'next' } },
    ],
  ])('is refused for %s', (_what, where, change) => {
    const notes = { ...ENTRY, path: '/api/{company_id}/{id}/notes', parent: 'employees' };
    expect(Object.keys(faultsOf({ employees: ENTRY, notes, absences: { ...ENTRY, ...change } }))).toEqual([where]);
  });

  test.each(['companies', 'changes', 'Absences', '1st', 'a-b', 'a'.repeat(42), 'a"; drop table x; --'])(
    'is refused for a list named %s',
    (name) => {
      expect(Object.keys(faultsOf({ [name]: ENTRY }))).toEqual([name]);
    },
  );
});

describe('fingerprint', () => {
  const endpoint = loadCatalogue().get('employees') as Endpoint;

  test('does not depend on the order of members', () => {
    const turned = Object.fromEntries(Object.entries(endpoint).toReversed()) as unknown as Endpoint;
    const pager = Object.fromEntries(Object.entries(endpoint.pager).toReversed()) as unknown as Endpoint['pager'];
    expect(fingerprint({ ...turned, pager })).toBe(fingerprint(endpoint));
  });

  test.each<Partial<Endpoint>>([
    { resource: 'x' },
    { method: 'POST' },
    { path: '/x/{company_id}' },
    { base: 'numbers' },
    { id: ['id', 'uid'] },
    { envelope: 'value' },
    { parent: 'x' },
    { pager: { ...endpoint.pager, size: 499 } },
    { query: { expand: 'department' } },
    { body: { active: true } },
    { fields: { total: 'none' } },
  ])('changes with %j', (change) => {
    expect(fingerprint({ ...endpoint, ...change })).not.toBe(fingerprint(endpoint));
  });

  test('stays as long as a checkpoint means the same', () => {
    // Of version 0.1.0, whose checkpoints are gone on from.
    expect(fingerprint(endpoint)).toBe('aa430fd7d78203b38ff0f75f53c73e47d77f37c559cc85a1218d9ed8bc406743');
    expect(fingerprint({ ...endpoint, order: 'unstable', deleteGuard: { share: 1, rows: 0 }, columns: { a: 'date' } })).toBe(
      fingerprint(endpoint),
    );
  });
});
