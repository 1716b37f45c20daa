import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { ACTIONS, type ActionName, ofCompany } from '../../src/dashboard/parts/actions.js';
import { type AdminFixture, startAdmin } from '../api/admin-fixture.js';
import { newGrant, records, verifiedWalk } from '../mirror/mirror-fixture.js';
import { hoursAgo, sweepOf } from '../runs/issue-world.js';
import { emptyTables } from '../support/empty-tables.js';
import { PageClient } from './page-client.js';

// Each button is pressed for one company next to two others: one of the same environment, and one of the other environment that has the same trouble.
// Neither may change. The buttons are the forms of pages, sent over HTTP.

let admin: AdminFixture;
let page: PageClient;
let pressed: CompanyKey;
let neighbour: CompanyKey;
let abroad: CompanyKey;

beforeAll(async () => {
  admin = await startAdmin(undefined, { webhook: {} });
  page = await PageClient.signedIn(admin.url);
  await page.open('/');
});
afterAll(() => admin.stop());
afterEach(() => emptyTables(admin.db, ...LEFT_OVER.map((table) => `muster.${table}`)));
beforeEach(async () => {
  pressed = await admin.addCompany();
  neighbour = await admin.addCompany();
  abroad = await admin.addCompany({ environment: 'production' });
  for (const company of [pressed, neighbour, abroad]) {
    await verifiedWalk(admin.db, company, records(20));
    await admin.db.prisma.list.updateMany({ where: company, data: { lastVerifiedAt: new Date() } });
    await admin.db.prisma.list.create({ data: { ...company, resource: 'departments', lastVerifiedAt: new Date() } });
    await admin.call('POST', `${ofCompany(fieldsOf(company))}/connect-link`);
  }
});

/** Tables with rows of the case before. */
const LEFT_OVER = [
  'connections',
  'lists',
  'runs',
  'holds',
  'issues',
  'notifications',
  'refresh_breakers',
  'schema_resources',
  'named_tokens',
];

type Fields = Record<string, string>;

/** A button: brings the trouble about, and gives the fields of its form. */
interface Case {
  readonly arrange?: () => Promise<Fields>;
  readonly fields?: () => Fields;
  /** What the company has then, beyond the change that every case must make. */
  readonly after?: () => Promise<void>;
}

const fieldsOf = ({ environment, companyId }: CompanyKey): Fields => ({ environment, company_id: companyId });
const update = (company: CompanyKey, data: object) => admin.db.prisma.connection.updateMany({ where: company, data });
const withTrouble = async (bring: (company: CompanyKey) => Promise<unknown>, more: readonly CompanyKey[] = [abroad]) => {
  for (const company of [pressed, ...more]) await bring(company);
};
const holdOf = async (company: CompanyKey) =>
  (await admin.db.prisma.hold.findFirstOrThrow({ where: { ...company, status: 'open' } })).id;
const notificationOf = async (company: CompanyKey) =>
  (await admin.db.prisma.notification.findFirstOrThrow({ where: company, orderBy: { seq: 'desc' } })).id;
const runOf = (company: CompanyKey, status: string) =>
  admin.db.prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full', status, finishedAt: new Date() } });
const failNotification = ({ environment, companyId }: CompanyKey) =>
  admin.db.prisma.notification.create({
    data: {
      environment,
      companyId,
      type: 'run_failed',
      change: randomUUID(),
      status: 'failed',
      attempts: 9,
      nextAttemptAt: null,
      lastError: { code: 'refused' },
    },
  });
const makeLate = (company: CompanyKey) =>
  admin.db.prisma.list.updateMany({ where: { ...company, resource: 'employees' }, data: { lastVerifiedAt: hoursAgo(40) } });
const openShareHold = (company: CompanyKey) => verifiedWalk(admin.db, company, records(4));
const openGrantHold = async (company: CompanyKey) => {
  await newGrant(admin.db, company);
  await verifiedWalk(admin.db, company, records(11, 10));
};

/** An issue of one company in each environment. */
async function lateIssue(): Promise<string> {
  await withTrouble(makeLate);
  await sweepOf(admin.db)();
  const issue = await admin.db.prisma.issue.findFirstOrThrow({ where: { cause: 'list_late', environment: 'test' } });
  expect(issue.companies).toBe(1);
  return issue.id;
}

/** The lists of the runs that were requested for many. */
async function syncedLists(): Promise<[string, string[]][]> {
  const runs = await admin.db.prisma.run.findMany({ where: { trigger: 'resync' }, include: { walks: true } });
  return runs.map(({ companyId, walks }) => [companyId, walks.map(({ resource }) => resource).toSorted()]);
}

async function decide(open: (company: CompanyKey) => Promise<unknown>): Promise<Fields> {
  await withTrouble(open, [neighbour, abroad]);
  return { id: await holdOf(pressed), confirmed: 'yes', reason: 'They left.' };
}

const ofPressed: Case = { fields: () => fieldsOf(pressed) };
const paused: Case = {
  arrange: async () => {
    await withTrouble((company) => update(company, { paused: true }), [neighbour, abroad]);
    return fieldsOf(pressed);
  },
};
const record = () => ({ ...fieldsOf(pressed), resource: 'employees', id: 'r1', confirmed: 'yes' });

const CASES: Readonly<Record<ActionName, Case>> = {
  'company.sync': ofPressed,
  'company.full': ofPressed,
  'company.verify': ofPressed,
  'company.pause': ofPressed,
  'company.resume': paused,
  'company.quiet_hours': {
    fields: () => ({ ...fieldsOf(pressed), quiet_hours: ' 12:00-13:00,07:00-09:00 ' }),
    after: async () => {
      const { quietHours } = await admin.db.prisma.connection.findFirstOrThrow({ where: { ...pressed } });
      expect(quietHours).toBe('07:00-09:00,12:00-13:00');
    },
  },
  'company.remove': ofPressed,
  'company.link': ofPressed,
  'record.forget': { fields: record },
  'record.lift': {
    arrange: async () => {
      for (const company of [pressed, neighbour, abroad]) {
        await admin.call('POST', `${ofCompany(fieldsOf(company))}/forget`, {
          resource: 'employees',
          id: 'r1',
        });
      }
      return record();
    },
  },
  'connect_link.create': ofPressed,
  'connect_links.create': {
    arrange: async () => {
      await withTrouble((company) => update(company, { reauthorizationReason: 'token_refused' }));
      return { environment: 'test' };
    },
  },
  'held_tokens.release': {
    arrange: async () => {
      for (const environment of ['test', 'production'])
        await admin.db.prisma.refreshBreaker.create({ data: { environment, openedAt: new Date() } });
      return { environment: 'test' };
    },
  },
  'issue.sync': {
    arrange: async () => {
      return { issue_id: await lateIssue(), count: '1' };
    },
    after: async () => expect(await syncedLists()).toEqual([[pressed.companyId, ['employees']]]),
  },
  'companies.sync': {
    arrange: async () => {
      await withTrouble((company) => runOf(company, 'failed'));
      return { status: 'failed', environment: 'test' };
    },
    after: async () => expect(await syncedLists()).toEqual([[pressed.companyId, ['departments', 'employees']]]),
  },
  'run.retry': {
    arrange: async () => {
      await withTrouble((company) => runOf(company, 'failed'), [neighbour, abroad]);
      return { ...fieldsOf(pressed), kind: 'sync', resources: 'employees' };
    },
  },
  'issue.snooze': { arrange: async () => ({ id: await lateIssue(), days: '3', reason: 'The service moves.' }) },
  'issue.unsnooze': {
    arrange: async () => {
      const id = await lateIssue();
      await admin.call('POST', `/api/issues/${id}/snooze`, { until: hoursAgo(-72).toISOString(), reason: 'The service moves.' });
      return { id };
    },
  },
  'run.cancel': {
    arrange: async () => {
      await withTrouble((company) => admin.runs.request({ company, trigger: 'manual' }), [neighbour, abroad]);
      const run = await admin.db.prisma.run.findFirstOrThrow({ where: { ...pressed, status: 'queued' } });
      return { id: run.id };
    },
  },
  'hold.approve': {
    arrange: () => decide(openShareHold),
    after: async () => {
      const living = { deletedAt: null };
      expect(await admin.db.prisma.employee.count({ where: { ...pressed, ...living } })).toBe(4);
    },
  },
  'hold.reject': { arrange: () => decide(openShareHold) },
  'holds.approve_grants': {
    arrange: async () => {
      await withTrouble(openGrantHold);
      await openShareHold(neighbour);
      return { environment: 'test' };
    },
  },
  'schema.rebuild': {
    arrange: async () => {
      for (const resource of ['employees', 'departments'])
        await admin.db.prisma.schemaResource.upsert({ where: { resource }, create: { resource }, update: {} });
      return { resource: 'employees' };
    },
    after: async () => {
      const { rebuildAskedAt } = await admin.db.prisma.schemaResource.findFirstOrThrow({ where: { resource: 'departments' } });
      expect(rebuildAskedAt).toBeNull();
    },
  },
  'notification.redeliver': {
    arrange: async () => {
      await withTrouble(failNotification, [neighbour, abroad]);
      return { id: await notificationOf(pressed) };
    },
  },
  'notifications.redeliver': {
    arrange: async () => {
      await withTrouble(failNotification);
      return { environment: 'test' };
    },
  },
  'notification.test': { fields: () => ({ environment: 'test' }) },
  'token.create': { fields: () => ({ name: 'night watch', role: 'viewer' }) },
  'token.delete': {
    arrange: async () => {
      const made = await Promise.all(['one', 'other'].map((name) => admin.call('POST', '/api/tokens', { name, role: 'viewer' })));
      return { id: made[0]!.json.id };
    },
    after: async () => {
      const other = await admin.db.prisma.namedToken.findFirstOrThrow({ where: { name: 'other' } });
      expect(other).toMatchObject({ revokedAt: null });
    },
  },
};

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

/** Tables of Muster and of the mirror. */
let tables: readonly Table[];
beforeAll(async () => {
  const { rows } = await admin.db.pool.query<Table>(
    `SELECT format('%I.%I', table_schema, table_name) AS name, array_agg(column_name::text) AS columns
     FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
     WHERE table_schema IN ('muster', 'mirror') AND table_type = 'BASE TABLE' GROUP BY 1 ORDER BY 1`,
  );
  tables = rows;
});

/** Rows of the tables of which `where` gives a condition, one text for each row with the name of its table. */
async function rowsOf(where: (table: Table) => string | undefined): Promise<string[]> {
  const reads = tables.flatMap((table) => {
    const condition = where(table);
    return condition === undefined
      ? []
      : `SELECT '${table.name} ' || to_jsonb(t)::text AS row FROM ${table.name} t WHERE ${condition}`;
  });
  const { rows } = await admin.db.pool.query<{ row: string }>(`${reads.join(' UNION ALL ')} ORDER BY row`);
  return rows.map(({ row }) => row);
}

/** What is stored of the two other companies, and of the other environment as a whole. */
function others(): Promise<string[]> {
  const keys = [neighbour, abroad].map(({ environment, companyId }) => `('${environment}', '${companyId}'::uuid)`).join();
  return rowsOf(({ columns }) => {
    if (!columns.includes('environment')) return undefined;
    return columns.includes('company_id') ? `(environment, company_id) IN (${keys})` : `environment = 'production'`;
  });
}

/** Tables that change with every call: who is signed in, and what was recorded of the call. */
const OF_EVERY_CALL = ['muster.audit', 'muster.sessions'];

function everything(): Promise<string[]> {
  return rowsOf(({ name }) => (OF_EVERY_CALL.includes(name) ? undefined : 'TRUE'));
}

/** Sends the form, and expects that something has changed. Returns what is stored of the others, before and after. */
async function press(
  path: string,
  fields: Fields | [string, string][],
): Promise<{ before: readonly string[]; after: readonly string[] }> {
  const [before, all] = [await others(), await everything()];
  expect(before.filter((row) => row.startsWith('muster.connections '))).toHaveLength(2);
  const { status, html, location } = await page.send(path, [
    ...Object.entries({ csrf: page.csrf, back: '/' }),
    ...(Array.isArray(fields) ? fields : Object.entries(fields)),
  ]);
  expect([status === 200 || location?.includes('?done=') === true, html]).toEqual([
    true,
    expect.not.stringContaining('role="alert"'),
  ]);
  expect(await everything()).not.toEqual(all);
  return { before, after: await others() };
}

test('every action has a case', () => {
  expect(Object.keys(CASES).toSorted()).toEqual(Object.keys(ACTIONS).toSorted());
});

test.each(Object.entries(CASES))('%s changes nothing of any other company', async (name, { arrange, fields, after }) => {
  const given = arrange ? await arrange() : fields!();
  const found = await press(`/act/${name}`, given);
  expect(found.after).toEqual(found.before);
  await after?.();
});

test.each(['company.sync', 'company.full', 'company.pause', 'company.resume'])(
  '%s of ticked companies reaches these alone',
  async (action) => {
    if (action === 'company.resume') await paused.arrange!();
    const found = await press('/act/selection', [
      ['action', action],
      ['company', `${pressed.environment}/${pressed.companyId}`],
    ]);
    expect(found.after).toEqual(found.before);
  },
);

test('the first press of Approve asks, and deletes nothing, then or later', async () => {
  const { id } = await decide(openShareHold);
  await page.open('/holds');
  const before = await everything();
  const { status, html } = await page.act('hold.approve', { back: '/holds', id: id! });
  expect([status, /Delete \d+ of \d+ rows of employees\?/.test(html)]).toEqual([200, true]);
  // What the first press may have begun after its page was sent is over before these are answered.
  for (let i = 0; i < 3; i++) await page.act('hold.approve', { back: '/holds', id: id! });
  expect(await everything()).toEqual(before);
});

const doneSoFar = (action: string) => admin.db.prisma.auditEntry.count({ where: { action } });

test('the question before a deletion is no decision: only the button of the question decides, once', async () => {
  const { confirmed: _, ...fields } = await decide(openShareHold);
  const before = await doneSoFar('hold.approve');
  const asked = await page.act('hold.approve', fields);
  expect([asked.status, asked.html]).toEqual([200, expect.stringContaining('Delete ')]);
  const decided = await page.act('hold.approve', { ...fields, confirmed: 'yes' });
  expect([decided.status, decided.location]).toEqual([303, expect.stringContaining('done=hold.approve')]);
  expect((await doneSoFar('hold.approve')) - before).toBe(1);
});

test('the question before more than twenty companies are synced requests nothing', async () => {
  for (let n = 0; n < 21; n++) await runOf(await admin.addCompany(), 'failed');
  const before = await doneSoFar('companies.sync');
  const asked = await page.act('companies.sync', { status: 'failed' });
  expect([asked.status, asked.location]).toEqual([303, '/syncs?status=failed']);
  const question = await page.open(asked.location!);
  expect(question.html).toContain('Sync 21 companies?');
  await page.act('companies.sync', { status: 'failed', confirmed: 'yes' });
  expect((await doneSoFar('companies.sync')) - before).toBe(1);
});
