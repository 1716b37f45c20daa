import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Change } from '../../../src/api/feed/changes.js';
import { Hold } from '../../../src/api/runs/hold-model.js';
import { Run } from '../../../src/api/runs/run-model.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { feedSpan } from '../../../src/db/tables/change-batches.js';
import { type AdminFixture, startAdmin, writeChanges } from '../admin-fixture.js';

let admin: AdminFixture;
let company: CompanyKey;
beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
});
afterAll(() => admin.stop());

describe('runs', () => {
  let ended: string;
  let queued: string;
  beforeAll(async () => {
    ended = (await admin.runs.request({ company, trigger: 'nightly' })).id;
    await admin.db.prisma.run.update({ where: { id: ended }, data: { status: 'failed', finishedAt: new Date() } });
    queued = (await admin.runs.request({ company, trigger: 'manual' })).id;
  });

  test('lists them newest first, page by page', async () => {
    const first = await admin.call('GET', '/api/runs?limit=1');
    expect([first.status, first.json.data.map(({ id }: { id: string }) => id)]).toEqual([200, [queued]]);
    const second = await admin.call('GET', `/api/runs?limit=1&cursor=${first.json.next_cursor}`);
    expect([second.json.data[0].id, second.json.next_cursor]).toEqual([ended, null]);
    for (const run of [...first.json.data, ...second.json.data]) expect(Run.parse(run)).toEqual(run);
  });

  test.each([
    ['status=failed', 1],
    ['status=running', 0],
    ['environment=production', 0],
    ['environment=test', 2],
  ])('filters by %s', async (query, count) => {
    expect((await admin.call('GET', `/api/runs?${query}`)).json.data.length).toBe(count);
  });

  test('filters by company in any letter case', async () => {
    expect((await admin.call('GET', `/api/runs?company_id=${company.companyId.toUpperCase()}`)).json.data.length).toBe(2);
    expect((await admin.call('GET', `/api/runs?company_id=${randomUUID()}`)).json.data).toEqual([]);
  });

  test('shows one', async () => {
    const answer = await admin.call('GET', `/api/runs/${queued.toUpperCase()}`);
    expect([answer.status, answer.json]).toMatchObject([
      200,
      { id: queued, status: 'queued', trigger: 'manual', started_at: null },
    ]);
    expect(answer.json.walks[0]).toMatchObject({
      resource: 'employees',
      status: 'queued',
      verified: false,
      pages: 0,
      total_records: null,
    });
  });

  test('asks for many at once', async () => {
    const failed = await admin.addCompany();
    const { id } = await admin.runs.request({ company: failed, trigger: 'nightly' });
    await admin.db.prisma.run.update({ where: { id }, data: { status: 'failed', finishedAt: new Date() } });
    await admin.addCompany({ environment: 'production' });
    expect(await admin.call('POST', '/api/syncs', { status: 'failed' })).toMatchObject({ status: 202, json: { queued: 1 } });
    expect(await admin.call('POST', '/api/syncs', { environment: 'production' })).toMatchObject({
      status: 202,
      json: { queued: 1 },
    });
    expect((await admin.call('POST', '/api/syncs')).json.queued).toBe(3);
  });

  test('cancels one', async () => {
    const answer = await admin.call('POST', `/api/runs/${queued}/cancel`);
    expect([answer.status, answer.json]).toMatchObject([200, { id: queued, status: 'cancelled' }]);
    expect(await admin.db.prisma.auditEntry.findFirst({ where: { action: 'run.cancel' } })).toMatchObject({
      details: { run_id: queued, outcome: 'done' },
    });
  });

  test.each<[string, string, unknown, number, string]>([
    ['GET', `/runs/${randomUUID()}`, undefined, 404, 'run_not_found'],
    ['POST', `/runs/${randomUUID()}/cancel`, undefined, 404, 'run_not_found'],
    ['GET', '/runs/1', undefined, 400, 'invalid_request'],
    ['GET', '/runs?cursor=bm9uZQ', undefined, 400, 'invalid_request'],
    ['GET', '/runs?status=done', undefined, 400, 'invalid_request'],
    ['GET', '/runs?company_id=acme', undefined, 400, 'invalid_request'],
    ['POST', '/syncs', { status: 'succeeded' }, 400, 'invalid_request'],
    ['POST', '/syncs', { company_id: 'acme' }, 400, 'invalid_request'],
  ])('%s %s is refused', async (method, path, body, status, code) => {
    const answer = await admin.call(method, `/api${path}`, body);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
  });
});

describe('changes', () => {
  const EXACT = '{"pay": 12345678901234567890.1234567890, "id": 9007199254740993}';
  let own: AdminFixture;
  beforeAll(async () => {
    own = await startAdmin();
    const companyKey = await own.addCompany();
    await writeChanges(own.db, companyKey, [{ id: 'a', data: EXACT }, { id: 'b' }]);
    await writeChanges(own.db, companyKey, [{ id: 'c' }], 'departments');
    await writeChanges(own.db, companyKey, [{ id: 'd', data: null }, { id: 'e "quoted"\n' }]);
  });
  afterAll(() => own.stop());

  test('gives every change once, whatever the size of the pages', async () => {
    for (const limit of [1, 2, 3, 5]) {
      const seen: string[] = [];
      let after = 0;
      for (;;) {
        const { status, json } = await own.call('GET', `/api/changes?after=${after}&limit=${limit}`);
        expect(status).toBe(200);
        if (json.data.length === 0) {
          expect(json.next_after).toBe(after);
          break;
        }
        for (const change of json.data) seen.push(Change.parse(change).id);
        after = json.next_after;
      }
      expect(seen).toEqual(['a', 'b', 'c', 'd', 'e "quoted"\n']);
    }
  });

  test('keeps every digit', async () => {
    const { text, json } = await own.call('GET', '/api/changes?limit=1');
    expect(text).toContain('"pay": 12345678901234567890.1234567890');
    expect(text).toContain('"id": 9007199254740993');
    expect(Object.keys(json.data[0]).toSorted()).toEqual(
      ['seq', 'resource', 'environment', 'company_id', 'id', 'op', 'data', 'changed_at', 'run_id'].toSorted(),
    );
    expect(json.data[0]).toMatchObject({ seq: 1, op: 'insert', changed_at: '2026-01-02T03:04:05.678Z', run_id: null });
  });

  test('shows what the view shows', async () => {
    const { json } = await own.call('GET', '/api/changes');
    const { rows } = await own.db.pool.query<{ seq: string; id: string }>('SELECT seq, id FROM mirror.changes ORDER BY seq');
    expect(json.data.map(({ seq, id }: { seq: number; id: string }) => ({ seq: String(seq), id }))).toEqual(rows);
  });

  test('filters by resource and environment, and begins after a number in the middle of a batch', async () => {
    const departments = await own.call('GET', '/api/changes?resource=departments');
    expect(departments.json.data.map(({ id }: { id: string }) => id)).toEqual(['c']);
    const rest = await own.call('GET', '/api/changes?after=2&resource=employees');
    expect(rest.json.data.map(({ id }: { id: string }) => id)).toEqual(['d', 'e "quoted"\n']);
    expect((await own.call('GET', '/api/changes?resource=cats')).json).toEqual({
      data: [],
      next_after: 5,
      feed: expect.any(String),
    });
    const counts = ['test', 'production'].map(
      async (name) => (await own.call('GET', `/api/changes?environment=${name}`)).json.data.length,
    );
    expect(await Promise.all(counts)).toEqual([5, 0]);
  });

  test('gives one change a line when asked for that', async () => {
    const { headers, text } = await own.call('GET', '/api/changes?after=3', undefined, { accept: 'application/x-ndjson' });
    expect(headers.get('content-type')).toBe('application/x-ndjson');
    const lines = text.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).seq)).toEqual([4, 5]);
    expect(headers.get('x-next-after')).toBe('5');
    const none = await own.call('GET', '/api/changes?resource=cats', undefined, { accept: 'application/x-ndjson' });
    expect([none.text, none.headers.get('x-next-after')]).toEqual(['', '5']);
  });

  test('tells whoever comes with numbers of another database, beyond the end of the feed or within it', async () => {
    const { json: end, headers } = await own.call('GET', '/api/changes?after=5');
    expect(end).toEqual({ data: [], next_after: 5, feed: headers.get('x-feed') });
    for (const query of [
      'after=6',
      `after=${'9'.repeat(18)}&resource=employees`,
      'after=3&feed=00000000-0000-4000-8000-000000000000',
    ])
      for (const accept of ['application/json', 'application/x-ndjson']) {
        const { status, json } = await own.call('GET', `/api/changes?${query}`, undefined, { accept });
        expect([status, json.code, json.go_on_after, json.feed]).toEqual([410, 'feed_restarted', 5, end.feed]);
      }
    expect((await own.call('GET', `/api/changes?after=3&feed=${end.feed.toUpperCase()}`)).json.data).toHaveLength(2);
  });

  test.each(['after=-1', 'after=x', 'after=1.5', `after=${'9'.repeat(30)}`, 'limit=0'])('refuses %s', async (query) => {
    const answer = await own.call('GET', `/api/changes?${query}`);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  test('says what is no longer kept, and lines go on to the first that is asked for', async () => {
    await own.db.pool.query('DELETE FROM muster.change_batches WHERE first_seq < 4');
    const { status, json } = await own.call('GET', '/api/changes?after=1');
    expect([status, json.code, json.go_on_after]).toEqual([410, 'changes_expired', 3]);
    expect((await own.call('GET', '/api/changes')).json.data[0].seq).toBe(4);
    await own.db.pool.query(
      `INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
       SELECT 1, 'test', gen_random_uuid(), CASE WHEN n > 10500 THEN 'departments' ELSE 'employees' END, now() FROM generate_series(1, 10501) n`,
    );
    await own.db.pool.query(
      `INSERT INTO muster.changes (batch_id, position, record_id, op) SELECT id, 0, 'x', 'delete' FROM muster.change_batches WHERE first_seq IS NULL`,
    );
    const empty = await own.call('GET', '/api/changes?resource=departments');
    expect(empty.json).toMatchObject({ data: [], next_after: 10_004 });
    const lines = await own.call('GET', '/api/changes?resource=departments', undefined, { accept: 'application/x-ndjson' });
    expect(JSON.parse(lines.text)).toMatchObject({ seq: 10_506, op: 'delete' });
    expect([empty.headers, lines.headers].map((headers) => headers.get('x-next-after'))).toEqual(['10004', '10506']);
  });

  test('ends with the last number that was given, whatever retention has left of it', async () => {
    await own.db.pool.query('DELETE FROM muster.change_batches');
    const { newest } = await feedSpan(own.db.pool);
    expect((await own.call('GET', `/api/changes?after=${newest}`)).json).toMatchObject({ data: [], next_after: Number(newest) });
    expect((await own.call('GET', `/api/changes?after=${Number(newest) + 1}`)).json.code).toBe('feed_restarted');
  });
});

describe('holds', () => {
  const held = async (resource: string, status = 'open') => {
    const list = { ...company, resource };
    const run = await admin.db.prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full', status: 'succeeded' } });
    const walk = await admin.db.prisma.walk.create({
      data: { ...list, runId: run.id, position: 0, epoch: 1n, status: 'succeeded' },
    });
    await admin.db.prisma.list.upsert({
      where: { environment_companyId_resource: list },
      create: { ...list, epoch: 1n },
      update: {},
    });
    return admin.db.prisma.hold.create({
      data: { ...list, runId: run.id, walkId: walk.id, count: 10, living: 12, sample: ['1', '2'], status },
    });
  };

  test('lists, approves and rejects them', async () => {
    const superseded = await held('employees', 'superseded');
    const employees = await held('employees');
    const departments = await held('departments');

    const all = await admin.call('GET', '/api/holds');
    expect(all.json.data.map(({ id }: { id: string }) => id)).toEqual([departments.id, employees.id, superseded.id]);
    for (const hold of all.json.data) expect(Hold.parse(hold)).toEqual(hold);
    expect(all.json.data[1]).toEqual({
      id: employees.id,
      environment: 'test',
      company_id: company.companyId,
      company_name: `Company ${company.companyId.slice(0, 4)}`,
      resource: 'employees',
      run_id: employees.runId,
      count: 10,
      cause: 'share',
      explanation: '10 of 12 rows of employees would be deleted at once.',
      living: 12,
      sample: ['1', '2'],
      samples: [{ id: '1' }, { id: '2' }],
      status: 'open',
      opened_at: employees.openedAt.toISOString(),
    });
    const page = await admin.call('GET', '/api/holds?limit=1&status=open');
    expect(page.json.data.length).toBe(1);
    const next = await admin.call('GET', `/api/holds?limit=1&status=open&cursor=${page.json.next_cursor}`);
    expect([next.json.data[0].id, next.json.next_cursor]).toEqual([employees.id, null]);

    expect(await admin.call('POST', `/api/holds/${employees.id}/approve`)).toMatchObject({
      status: 200,
      json: { status: 'approved' },
    });
    expect(await admin.call('POST', `/api/holds/${departments.id}/reject`)).toMatchObject({
      status: 200,
      json: { status: 'rejected' },
    });
    const again = await admin.call('POST', `/api/holds/${departments.id}/approve`);
    expect([again.status, again.json.code]).toEqual([409, 'hold_not_open']);
    const entries = await admin.db.prisma.auditEntry.findMany({
      where: { action: { startsWith: 'hold.' } },
      orderBy: { id: 'asc' },
    });
    expect(entries.map(({ action, details }) => [action, (details as { outcome: string }).outcome])).toEqual([
      ['hold.approve', 'done'],
      ['hold.reject', 'done'],
      ['hold.approve', 'hold_not_open'],
    ]);
  });

  test.each([
    ['POST', `/holds/${randomUUID()}/approve`, 404, 'hold_not_found'],
    ['POST', `/holds/${randomUUID()}/reject`, 404, 'hold_not_found'],
    ['POST', '/holds/1/approve', 400, 'invalid_request'],
    ['GET', '/holds?status=closed', 400, 'invalid_request'],
    ['GET', '/holds?cursor=!!', 400, 'invalid_request'],
  ])('%s %s is refused', async (method, path, status, code) => {
    const answer = await admin.call(method, `/api${path}`);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
  });
});
