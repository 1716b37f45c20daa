import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditEntryModel } from '../../../src/api/operation/audit-model.js';
import { recordFlowEnd } from '../../../src/oauth/flow-record.js';
import { createLogger } from '../../../src/observability/logger.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => void (admin = await startAdmin()));
afterAll(() => admin.stop());

const list = async (query = '') => (await admin.call('GET', `/api/audit${query}`)).json;

test('lists who did what, newest first, with the reason for an authorization that connected nothing', async () => {
  expect((await admin.fetch('/api/audit')).status).toBe(401);
  const company = await admin.addCompany();
  await admin.call('POST', `/api/companies/test/${company.companyId}/pause`);
  const linkId = randomUUID();
  const deps = { db: admin.db, logger: createLogger({ level: 'silent' }) };
  await recordFlowEnd(deps, { linkId, environment: 'test', outcome: 'not_configured', causes: { reason: 'invalid_client' } });
  const [failed, paused] = (await list()).data;
  expect(failed).toEqual({
    id: expect.any(String),
    at: expect.any(String),
    actor: 'connect link',
    role: null,
    action: 'company.connect',
    environment: 'test',
    details: { link_id: linkId, outcome: 'not_configured', reason: 'invalid_client' },
  });
  expect(paused).toMatchObject({ actor: 'admin', role: 'admin', action: 'company.pause', company_id: company.companyId });
  expect((await list('?action=company.connect')).data).toEqual([failed]);
  expect((await list('?actor=connect%20link&environment=test')).data).toEqual([failed]);
  expect((await list(`?company_id=${company.companyId.toUpperCase()}`)).data).toEqual([paused]);
  const { data, next_cursor } = await list('?limit=1');
  expect(data).toEqual([failed]);
  expect((await list(`?limit=1&cursor=${next_cursor}`)).data).toEqual([paused]);
});

test('filters by everything at once, and finds what was done to a company by its id alone', async () => {
  const company = await admin.addCompany();
  const run = (await admin.call('POST', `/api/companies/test/${company.companyId}/sync`)).json.run;
  await admin.call('POST', `/api/runs/${run.id}/cancel`);
  const path = `?actor=admin&action=run.cancel&environment=test&company_id=${company.companyId}&limit=5`;
  expect((await list(path)).data).toMatchObject([{ role: 'admin', action: 'run.cancel', details: { run_id: run.id } }]);
  expect((await list(path.replace('=test', '=production'))).data).toEqual([]);
  expect((await list(path.replace('=admin', '=anna'))).data).toEqual([]);
});

test('shows the role of whoever acted before roles were kept', async () => {
  await admin.db.pool.query(`INSERT INTO muster.audit (actor, action) VALUES ('admin', 'old.one'), ('connect link', 'old.one')`);
  const { data } = await list('?action=old.one');
  expect(data.map(({ actor, role }: AuditEntryModel) => [actor, role])).toEqual([
    ['connect link', null],
    ['admin', 'admin'],
  ]);
});

test('gives CSV that a spreadsheet takes for text', async () => {
  const rows = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', 'a "quoted", one', 'two\r\nlines'].map((actor) => ({
    actor,
    role: 'viewer',
    action: 'csv.test',
    details: { text: 'a, "b"' },
  }));
  await admin.db.prisma.auditEntry.createMany({ data: rows });
  const answer = await admin.call('GET', '/api/audit?action=csv.test', undefined, { accept: 'text/csv' });
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
  const [header, ...lines] = answer.text.trimEnd().split(/\r\n(?=\d|$)/);
  expect(header).toBe('id,at,actor,role,action,environment,company_id,details');
  const cells = lines.map((line) => /^\d+,[\d-]+T[\d:.]+Z,(.*),viewer,csv\.test,,,(.*)$/s.exec(line)?.slice(1));
  const details = '"{""text"":""a, \\""b\\""""}"';
  expect(cells).toEqual(
    ['"two\r\nlines"', '"a ""quoted"", one"', "'\tx", "'@SUM(A1)", "'-1", "'+1", "'=1+1"].map((actor) => [actor, details]),
  );
  expect(answer.text.endsWith('\r\n')).toBe(true);

  const first = await admin.call('GET', '/api/audit?action=csv.test&limit=4', undefined, { accept: 'text/csv' });
  const cursor = first.headers.get('x-next-cursor');
  const second = await admin.call('GET', `/api/audit?action=csv.test&cursor=${cursor}`, undefined, { accept: 'text/csv' });
  expect([second.headers.get('x-next-cursor'), second.text.match(/csv\.test/g)?.length]).toEqual([null, 3]);
});
