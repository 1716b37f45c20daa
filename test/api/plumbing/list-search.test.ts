import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CompanyKey, keyText } from '../../../src/core/company.js';
import { folded, foldText } from '../../../src/db/statements/folding.js';
import { Prisma } from '../../../src/generated/prisma/client.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => void (admin = await startAdmin()));
afterAll(() => admin.stop());

interface Found {
  readonly data: readonly Record<string, string>[];
  readonly next_cursor: string | null;
  readonly previous_cursor?: string;
  readonly total?: number;
}
const get = async (path: string): Promise<Found> => (await admin.call('GET', `/api${path}`)).json;

async function named(name: string | null, companyId = randomUUID() as string): Promise<CompanyKey> {
  const company = await admin.addCompany({ companyId });
  await admin.db.prisma.company.update({ where: { environment_companyId: company }, data: { name } });
  return company;
}

describe('folding', () => {
  test.each([
    ['Ørsted', 'orsted'],
    ['ÆRØ Åpent', 'aero apent'],
    ['Straße STRAẞE', 'strasse strasse'],
    ['Łódź Żółć', 'lodz zolc'],
    ['İstanbul ışık I', 'istanbul isik i'],
    ['Þór Đorđević Œuvre', 'thor dordevic oeuvre'],
    ['Ё Щука Київ', 'е щука киів'],
    ['ΑΘΉΝΑ ΟΔΌΣ', 'αθηνα οδοσ'],
    ['cafe\u0301 № ﬁn', 'cafe no fin'],
    ['O’Neill – A', "o'neill - a"],
    ['東京 🙂', '東京 🙂'],
  ])('%s becomes %s', (text, result) => {
    expect(foldText(text)).toBe(result);
  });

  test('PostgreSQL folds every letter as TypeScript does', async () => {
    const letters = Array.from({ length: 0x2500 }, (_, code) => String.fromCodePoint(code || 1));
    const rows = await admin.db.prisma.$queryRaw<{ letter: string; folded: string }[]>`
      SELECT letter, ${folded(Prisma.sql`letter`)} AS folded FROM unnest(${letters}::text[]) AS letter`;
    expect(rows.filter(({ letter, folded: text }) => foldText(letter) !== text)).toEqual([]);
  });
});

describe('companies by name', () => {
  const all = ['Ørsted Vind', 'Straße & Söhne', 'alfa', 'Beta', 'Ålesund Kommune'];
  beforeAll(async () => {
    for (const name of all) await named(name);
    await named(null, 'ffffffff-0000-4000-8000-000000000001');
  });
  const namesOf = (found: Found) => found.data.map(({ name }) => name);

  test.each([
    ['orsted', 'Ørsted Vind'],
    ['Ørsted', 'Ørsted Vind'],
    ['STRASSE', 'Straße & Söhne'],
    ['sohne', 'Straße & Söhne'],
    ['ålesund', 'Ålesund Kommune'],
    ['ALESUND', 'Ålesund Kommune'],
  ])('%s finds %s, and one is counted', async (q, name) => {
    const found = await get(`/companies?q=${encodeURIComponent(q)}`);
    expect([namesOf(found), found.total]).toEqual([[name], 1]);
  });

  test('sorts by name as people read names, in both directions, page by page and back', async () => {
    const order = ['Ålesund Kommune', 'alfa', 'Beta', null, 'Ørsted Vind', 'Straße & Söhne'];
    expect(namesOf(await get('/companies?sort=name'))).toEqual(order);
    expect(namesOf(await get('/companies?sort=name&order=desc'))).toEqual(order.toReversed());
    const first = await get('/companies?sort=name&limit=2');
    expect([first.previous_cursor, first.total]).toEqual([undefined, 6]);
    const second = await get(`/companies?sort=name&limit=2&cursor=${first.next_cursor}`);
    const third = await get(`/companies?sort=name&limit=2&cursor=${second.next_cursor}`);
    expect([...namesOf(second), ...namesOf(third), third.next_cursor]).toEqual([...order.slice(2), null]);
    const back = await get(`/companies?sort=name&limit=2&cursor=${third.previous_cursor}`);
    expect(namesOf(back)).toEqual(order.slice(2, 4));
    const begin = await get(`/companies?sort=name&limit=2&cursor=${back.previous_cursor}`);
    expect([namesOf(begin), begin.previous_cursor, begin.next_cursor]).toEqual([order.slice(0, 2), undefined, first.next_cursor]);
  });

  test('goes on after companies whose names are nothing but marks', async () => {
    const ids = ['eeeeeeee-0000-4000-8000-000000000001', 'eeeeeeee-0000-4000-8000-000000000002'];
    for (const id of ids) await named('\u0301', id);
    const first = await get('/companies?sort=name&q=eeeeeeee&limit=1');
    const second = await get(`/companies?sort=name&q=eeeeeeee&limit=1&cursor=${first.next_cursor}`);
    expect([...first.data, ...second.data].map(({ company_id }) => company_id)).toEqual(ids);
    for (const companyId of ids) await admin.db.prisma.connection.deleteMany({ where: { companyId } });
  });

  test('pages stay right while companies come and go', async () => {
    const first = await get('/companies?sort=name&limit=3');
    const new1 = await named('Aaron');
    const new2 = await named('Zeta');
    const rest = await get(`/companies?sort=name&limit=100&cursor=${first.next_cursor}`);
    expect(namesOf(rest)).toEqual([null, 'Ørsted Vind', 'Straße & Söhne', 'Zeta']);
    expect(namesOf(await get(`/companies?sort=name&cursor=${rest.previous_cursor}`))).toContain('Aaron');
    for (const company of [new1, new2]) await admin.call('DELETE', `/api/companies/${company.environment}/${company.companyId}`);
  });

  test.each(['worst', 'status', 'records', 'proved', 'next_sync', ''])(
    'by %j every company comes once, there and back',
    async (sort) => {
      for (const order of ['asc', 'desc']) {
        const query = `/companies?limit=2&order=${order}&sort=${sort}`;
        const whole = (await get(`/companies?order=${order}&sort=${sort}`)).data.map(({ company_id }) => company_id);
        const there: (string | undefined)[] = [];
        let page = await get(query);
        let pages = 1;
        for (; ; pages++) {
          there.push(...page.data.map(({ company_id }) => company_id));
          if (page.next_cursor === null) break;
          page = await get(`${query}&cursor=${page.next_cursor}`);
        }
        expect(there).toEqual(whole);
        const back = page.data.map(({ company_id }) => company_id);
        for (; page.previous_cursor; pages--) {
          page = await get(`${query}&cursor=${page.previous_cursor}`);
          back.unshift(...page.data.map(({ company_id }) => company_id));
        }
        expect([back, pages]).toEqual([whole, 1]);
      }
    },
  );

  test.each(['records', 'name', ''])('a cursor of another order is refused by %j', async (sort) => {
    const cursor = Buffer.from('production|x').toString('base64url');
    expect((await admin.call('GET', `/api/companies?sort=${sort}&cursor=${cursor}`)).status).toBe(400);
  });
});

describe('lists by company', () => {
  let wanted: CompanyKey;
  beforeAll(async () => {
    wanted = await named('Søndre Land', 'abcdef01-0000-4000-8000-000000000001');
    for (let i = 0; i < 3; i++) {
      for (const company of [wanted, await named(`Other ${i}`)]) {
        const run = await admin.db.prisma.run.create({
          data: { ...company, trigger: 'nightly', mode: 'full', status: 'failed' },
        });
        const walk = await admin.db.prisma.walk.create({
          data: { ...company, resource: `list${i}`, runId: run.id, position: 0, status: 'succeeded', rejected: 1 },
        });
        const list = { ...company, resource: `list${i}` };
        await admin.db.prisma.list.create({ data: { ...list, lastRunId: run.id } });
        await admin.db.prisma.rejectedRecord.create({
          data: { walkId: walk.id, pass: 0, page: 0, position: 0, reason: 'no_id', text: Buffer.from('{}').toString('base64') },
        });
        await admin.db.prisma.hold.create({
          data: { ...list, runId: run.id, walkId: walk.id, count: 1, living: 2, sample: ['1'] },
        });
        await admin.db.prisma.notification.create({ data: { ...company, type: 'run_failed', change: randomUUID() } });
        await admin.db.prisma.auditEntry.create({ data: { ...company, actor: 'anna', action: 'company.sync', details: {} } });
      }
    }
  });

  const lists = ['/runs', '/holds', '/notifications', '/audit', '/rejected'];
  test.each(lists)('%s takes a part of the name, and the beginning of the id', async (list) => {
    for (const company of ['sondre land', 'ABCDEF01', wanted.companyId]) {
      const { data } = await get(`${list}?company=${encodeURIComponent(company)}`);
      expect(new Set(data.map(({ environment, company_id }) => `${environment}/${company_id}`))).toEqual(
        new Set([keyText(wanted)]),
      );
      expect(data.length).toBe(3);
    }
    expect((await get(`${list}?company=nothing+like+it`)).data).toEqual([]);
    expect(
      (await get(`${list}?company=sondre&environment=${wanted.environment === 'test' ? 'production' : 'test'}`)).data,
    ).toEqual([]);
  });

  test.each([
    '/runs?company=sondre',
    '/runs?company=sondre&status=failed',
    '/runs?status=failed',
    '/runs?resource=list1&company=sondre',
    '/holds?company=sondre&status=open',
    '/notifications?company=sondre&status=pending',
    '/notifications?type=run_failed',
    '/audit?company=sondre&action=company.sync',
    '/audit?actor=anna',
    '/audit',
    '/holds',
    '/tokens',
  ])('%s is read there and back', async (list) => {
    if (list === '/tokens')
      for (const name of ['one', 'two', 'three']) await admin.call('POST', '/api/tokens', { name, role: 'viewer' });
    const path = `${list}${list.includes('?') ? '&' : '?'}`;
    const idsOf = ({ data }: Found) => data.map(({ id }) => id);
    const whole = idsOf(await get(`${path}limit=500`));
    expect(whole.length).toBeGreaterThan(0);
    const there: (string | undefined)[] = [];
    let page = await get(`${path}limit=2`);
    expect(page.previous_cursor).toBeUndefined();
    for (;;) {
      there.push(...idsOf(page));
      if (page.next_cursor === null) break;
      page = await get(`${path}limit=2&cursor=${page.next_cursor}`);
    }
    expect(there).toEqual(whole);
    const back = idsOf(page);
    while (page.previous_cursor) {
      page = await get(`${path}limit=2&cursor=${page.previous_cursor}`);
      back.unshift(...idsOf(page));
    }
    expect(back).toEqual(whole);
  });

  test('more companies than are looked up one by one are found, too', async () => {
    const many = Array.from({ length: 201 }, (_, i) => ({
      environment: wanted.environment,
      companyId: `00000000-0000-4000-9000-${String(i).padStart(12, '0')}`,
    }));
    await admin.db.prisma.connection.createMany({ data: many });
    await admin.db.prisma.company.createMany({ data: many.map((company) => ({ ...company, name: 'Søndre Sogn' })) });
    for (const list of lists.slice(0, 4)) {
      expect((await get(`${list}?company=sondre`)).data.length).toBe(3);
      if (list === '/runs') expect((await get(`${list}?company=sondre&status=failed`)).data.length).toBe(3);
    }
  });
});
