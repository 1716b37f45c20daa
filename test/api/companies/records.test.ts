import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, writeChanges } from '../admin-fixture.js';

let admin: AdminFixture;
let company: CompanyKey;
let base: string;

/** With whatever an address, a pattern or a quote could mean. */
const ODD = [
  'a/b',
  '100%',
  "O'Neill",
  'é – "x"',
  '..',
  '.',
  'a b',
  '../../x',
  '%2F',
  '\u{1f600}',
  'ab'.repeat(100),
  String.raw`back\slash`,
];

const PEOPLE: readonly (readonly [string, string])[] = [
  ['10', '{"uid":"10","firstName":"Øystein","lastName":"Ærlig","number":7001,"pay":12345678901234567890.50}'],
  ['100', '{"uid":"100","displayName":"Anna Maria Straße","address":{"city":"Tromsø"}}'],
  ['2', '{"uid":"2","person":{"name":"Ångström, José"},"notes":["Likes \\"10\\" and \\\\ signs"]}'],
  ['3', '{"uid":"3","firstName":"Anna","lastName":"Berg"}'],
  ['X10', '{"uid":"X10","city":"firstName"}'],
];

beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
  base = `/api/companies/${company.environment}/${company.companyId}`;
  await write('employees', [...PEOPLE, ...ODD.map((id) => [id, JSON.stringify({ uid: id, name: `odd ${id}` })] as const)]);
  await write('departments', [['10', '{"id":10,"name":"Annals"}']]);
  await admin.db.pool.query(
    `INSERT INTO mirror.employees (environment, company_id, id, data, deleted_at) VALUES ($1, $2, 'gone', '{"name":"Anna Gone"}', now())`,
    [company.environment, company.companyId],
  );
  const other = await admin.addCompany();
  await admin.db.prisma.employee.create({ data: { ...other, id: '10', data: { firstName: 'Anna' } } });
});
afterAll(() => admin.stop());

async function write(resource: string, records: readonly (readonly [string, string])[]) {
  await admin.db.pool.query(
    `INSERT INTO mirror.${resource} (environment, company_id, id, data) SELECT $1, $2, r.id, r.data::jsonb FROM unnest($3::text[], $4::text[]) AS r(id, data)`,
    [company.environment, company.companyId, records.map(([id]) => id), records.map(([, data]) => data)],
  );
}

/** The ids that are found, over all pages. */
async function find(q: string, { resource = '', limit = 100 } = {}): Promise<string[]> {
  const found: string[] = [];
  for (let cursor = ''; ; ) {
    const query = new URLSearchParams({ q, resource, cursor, limit: String(limit) });
    const { status, json, text } = await admin.call('GET', `${base}/records?${query}`);
    expect(status, text).toBe(200);
    expect(json.data.length).toBeLessThanOrEqual(limit);
    found.push(...json.data.map((each: { resource: string; id: string }) => `${each.resource} ${each.id}`));
    if (json.next_cursor === null) return found;
    cursor = json.next_cursor;
  }
}
const employees = (...ids: string[]) => ids.map((id) => `employees ${id}`);

test.each([1, 2, 100])('ids come first, then their beginnings, then texts and numbers (limit %d)', async (limit) => {
  const of = async (q: string) => (await find(q, { limit })).map((each) => each.replace('employees ', ''));
  expect((await of('10')).slice(0, 4)).toEqual(['10', 'departments 10', '100', '100%']);
  expect((await of('10')).slice(4)).toEqual(['2', 'X10']);
  expect(await of('7001')).toEqual(['10']);
  expect(await of('x10')).toEqual(['X10']);
});

test.each([
  ['oystein', ['10']],
  ['ØYSTEIN', ['10']],
  ['aerlig', ['10']],
  ['erlig oyst', ['10']],
  ['strasse', ['100']],
  ['STRASSE anna', ['100']],
  ['tromso', ['100']],
  ['angstrom jose', ['2']],
  ['  Berg   anna ', ['3']],
  ['anna 3', ['3']],
  ['12345678901234567890.50', ['10']],
  ['\\ signs', ['2']],
  ['"10"', ['2']],
  ['lastName', []],
  ['firstName', ['X10']],
  ['anna gone', []],
  ['a.*', []],
  ['%', ['%2F', '100%']],
  ['(', []],
  ['\u0301', ODD.filter((id) => id === '\u0301')],
])('%s finds people by what is in their records, and not by names of members', async (q, ids) => {
  expect((await find(q, { resource: 'employees' })).toSorted()).toEqual(employees(...ids).toSorted());
});

test('a decomposed text is found by a composed one, and the other way round', async () => {
  await write('employees', [
    ['nfd', JSON.stringify({ name: 'Zo\u0065\u0308' })],
    ['nfc', JSON.stringify({ name: 'Zo\u00eb' })],
  ]);
  for (const q of ['zoe', 'Zoë', 'Zoe\u0308']) expect((await find(q)).toSorted()).toEqual(employees('nfc', 'nfd'));
});

test('quotes and hyphens are found as people type them', async () => {
  await write('employees', [['signs', '{"uid":"signs","name":"Siobhán O’Brien‐Łukasz"}']]);
  for (const q of ["o'brien", 'O’Brien', 'brien-lukasz', 'BRIEN–ŁUKASZ']) expect(await find(q)).toEqual(employees('signs'));
});

test('every record is given without a text, and each odd id is found by itself and shown', async () => {
  expect(await find('', { resource: 'employees', limit: 3 })).toEqual(await find('', { resource: 'employees' }));
  expect(await find('', { resource: 'employees' })).toHaveLength(PEOPLE.length + ODD.length + 3);
  for (const id of ODD) {
    expect((await find(id, { resource: 'employees' }))[0]).toBe(`employees ${id}`);
    const { status, json } = await admin.call('GET', `${base}/record?${new URLSearchParams({ resource: 'employees', id })}`);
    expect([status, json.id, json.state, json.label], id).toEqual([200, id, 'living', `odd ${id}`.slice(0, 80)]);
  }
});

test('a record is given with its digits and with a name', async () => {
  const { text, json } = await admin.call('GET', `${base}/records?q=10&resource=employees&limit=1`);
  expect(text).toContain('"pay": 12345678901234567890.50');
  expect(json.data[0].label).toBe('Øystein Ærlig');
  const labels = async (q: string) => (await admin.call('GET', `${base}/records?q=${q}&limit=1`)).json.data[0].label;
  expect([await labels('100'), await labels('2'), await labels('X10')]).toEqual(['Anna Maria Straße', 'Ångström, José', 'X10']);
});

test('a search is audited without its text; viewers may not search', async () => {
  await admin.db.prisma.auditEntry.deleteMany();
  await find('oystein', { resource: 'employees' });
  await find('');
  await admin.call('GET', `${base}/record?resource=employees&id=10`);
  await admin.call('GET', `${base}/records?resource=unheard_of`);
  const entries = await admin.db.prisma.auditEntry.findMany({ orderBy: { id: 'asc' } });
  expect(entries.map(({ actor, action, companyId, details }) => [actor, action, companyId, details])).toEqual([
    ['admin', 'record.search', company.companyId, { resource: 'employees', by_text: true, outcome: 'done' }],
    ['admin', 'record.search', company.companyId, { by_text: false, outcome: 'done' }],
    ['admin', 'record.read', company.companyId, { resource: 'employees', outcome: 'done' }],
    ['admin', 'record.search', company.companyId, { resource: 'unheard_of', by_text: false, outcome: 'unknown_resource' }],
  ]);
  expect(admin.log()).not.toContain('oystein');
  for (const role of ['viewer', 'operator']) {
    const { json } = await admin.call('POST', '/api/tokens', { name: role, role });
    const headers = { authorization: `Bearer ${json.token}` };
    for (const path of ['records?q=10', 'record?resource=employees&id=10']) {
      const answer = await admin.call('GET', `${base}/${path}`, undefined, headers);
      expect(answer).toMatchObject(role === 'viewer' ? { status: 403, json: { code: 'forbidden' } } : { status: 200 });
    }
  }
});

test.each([
  ['records?resource=unheard_of', 422, 'unknown_resource'],
  ['records?resource=No%20List', 400, 'invalid_request'],
  ['records?q=%00', 400, 'invalid_request'],
  ['records?cursor=abc', 400, 'invalid_request'],
  [`records?cursor=${Buffer.from('["text","departments","1"]').toString('base64url')}`, 400, 'invalid_request'],
  ['record?resource=employees', 400, 'invalid_request'],
  ['record?resource=unheard_of&id=1', 422, 'unknown_resource'],
])('%s is refused', async (path, status, code) => {
  expect(await admin.call('GET', `${base}/${path}`)).toMatchObject({ status, json: { code } });
});

test.each([
  String.raw`["exact","employees","\x"]`,
  String.raw`["exact","employees","\u0000"]`,
  '["exact","employees","a\nb"]',
  '["exact","departments_of_old","a"]',
])('the cursor %j is refused', async (text) => {
  const cursor = Buffer.from(text).toString('base64url');
  const { status, json } = await admin.call('GET', `${base}/records?q=a&cursor=${cursor}`);
  expect([status, json.code]).toEqual([400, 'invalid_request']);
});

test('an unknown company is not found', async () => {
  for (const path of ['records?q=1', 'record?resource=employees&id=1'])
    expect(await admin.call('GET', `/api/companies/test/5f0a3c1e-0000-4000-8000-000000000000/${path}`)).toMatchObject({
      status: 404,
      json: { code: 'company_not_found' },
    });
});

test('a record has its history member by member, newest first, page by page', async () => {
  const id = 'with history';
  const versions = [
    '{"name":"A","pay":1.50,"at":{"city":"X","zip":[1, 2]}}',
    '{"name":"A","pay":1.5,"at":{"city":"Y","zip":[1, 2]}}',
  ];
  const third = '{"name":"B","at":{"city":"Y","zip":[1, 3]},"big":12345678901234567890}';
  for (const data of [...versions, third])
    await writeChanges(admin.db, company, [
      { id: 'another', data },
      { id, data },
    ]);
  await admin.db.pool.query(`UPDATE muster.changes SET op = 'update' WHERE record_id = $1 AND data <> $2::jsonb`, [
    id,
    versions[0],
  ]);
  await write('employees', [[id, third]]);
  const show = async (more = '') =>
    (await admin.call('GET', `${base}/record?${new URLSearchParams({ resource: 'employees', id })}${more}`)).json;
  const whole = await show();
  expect(whole).toMatchObject({ state: 'living', forgotten: false, similar: [], next_before: null, label: 'B' });
  expect(whole.members).toContainEqual({ path: 'at.zip', value: '[1, 3]' });
  expect(whole.members).toContainEqual({ path: 'big', value: '12345678901234567890' });
  expect(whole.history.map(({ op, kept, changes }: Record<string, unknown>) => [op, kept, changes])).toEqual([
    [
      'update',
      true,
      [
        { path: 'at.zip', before: '[1, 2]', after: '[1, 3]' },
        { path: 'big', after: '12345678901234567890' },
        { path: 'name', before: '"A"', after: '"B"' },
        { path: 'pay', before: '1.5' },
      ],
    ],
    [
      'update',
      true,
      [
        { path: 'at.city', before: '"X"', after: '"Y"' },
        { path: 'pay', before: '1.50', after: '1.5' },
      ],
    ],
    ['insert', true, []],
  ]);
  const pages = [await show('&limit=1')];
  while (pages.at(-1).next_before !== null) pages.push(await show(`&limit=1&before=${pages.at(-1).next_before}`));
  expect(pages.flatMap(({ history }) => history)).toEqual(whole.history);
});

test('a record that was forgotten says so, and an unknown one names ids that are like it', async () => {
  await write('employees', [['Case1', '{"name":"Case"}']]);
  const unknown = await admin.call('GET', `${base}/record?resource=employees&id=%20case1`);
  expect(unknown.json).toMatchObject({ state: 'unknown', similar: ['Case1'], history: [], text: null, label: ' case1' });
  const forget = (id: string) => admin.call('POST', `${base}/forget`, { resource: 'employees', id });
  expect((await forget('case1')).json).toEqual({ erased: 0, found: false, similar: ['Case1'] });
  expect((await forget('Case1')).json).toEqual({ erased: 1 });
  expect((await forget('Case1')).json).toEqual({ erased: 0, found: false });
  const gone = await admin.call('GET', `${base}/record?resource=employees&id=Case1`);
  expect(gone.json).toMatchObject({ state: 'unknown', forgotten: true, similar: [] });
});

test('a search of a large list ends its calls, and goes on where it ended', async () => {
  const large = await admin.addCompany();
  await admin.db.pool.query(
    `INSERT INTO mirror.employees (environment, company_id, id, data)
     SELECT $1, $2, n::text, jsonb_build_object('name', 'person ' || n, 'note', repeat('x', 300)) FROM generate_series(1, 25000) n`,
    [large.environment, large.companyId],
  );
  const path = `/api/companies/${large.environment}/${large.companyId}/records`;
  const { json } = await admin.call('GET', `${path}?q=${encodeURIComponent('PERSON 24987')}`);
  expect(json.data.map(({ id }: { id: string }) => id)).toEqual(['24987']);
  // More candidates than a statement gives, none of which matches: the word is a member's name.
  const names = await admin.call('GET', `${path}?q=note`);
  expect(names.json.data).toEqual([]);
});
