import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { recordEvent } from '../../src/notifications/events.js';
import { type AdminFixture, startAdmin, TOKEN } from '../api/admin-fixture.js';
import { runMuster } from '../cli/run-muster.js';

let admin: AdminFixture;
let company: CompanyKey;
let ids: string[];

beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
  const record = (type: 'run_failed' | 'deletions_held', of: CompanyKey) =>
    inTransaction(admin.db, (tx) =>
      recordEvent(tx, { type, company: of, change: randomUUID(), details: { run_id: 'a-run', reason: 'walks_failed' } }),
    );
  await record('run_failed', company);
  await record('deletions_held', company);
  await record('run_failed', await admin.addCompany({ environment: 'production' }));
  const rows = await admin.db.prisma.notification.findMany({ orderBy: { seq: 'asc' } });
  ids = rows.map(({ id }) => id);
  await admin.db.prisma.notification.update({
    where: { id: ids[0]! },
    data: { status: 'failed', attempts: 7, nextAttemptAt: null, lastError: { code: 'answered', status: 404 } },
  });
});
afterAll(() => admin.stop());

const listed = async (query: string) =>
  ((await admin.call('GET', `/api/notifications${query}`)).json as { data: { id: string }[] }).data.map(({ id }) => id);

test('they are listed newest first, page by page, and filtered', async () => {
  expect(await listed('')).toEqual(ids.toReversed());
  expect(await listed('?status=failed')).toEqual([ids[0]]);
  expect(await listed('?type=run_failed')).toEqual([ids[2], ids[0]]);
  expect(await listed('?environment=test')).toEqual([ids[1], ids[0]]);
  expect(await listed(`?company_id=${company.companyId.toUpperCase()}&type=deletions_held`)).toEqual([ids[1]]);
  const first = await admin.call('GET', '/api/notifications?limit=2');
  expect(await listed(`?limit=2&cursor=${first.json.next_cursor}`)).toEqual([ids[0]]);
  const { json } = await admin.call('GET', '/api/notifications?status=failed');
  expect(json).toEqual({
    data: [
      {
        id: ids[0],
        type: 'run_failed',
        occurred_at: expect.stringMatching(/Z$/),
        environment: 'test',
        company_id: company.companyId,
        company_name: `Company ${company.companyId.slice(0, 4)}`,
        reason: 'walks_failed',
        run_id: 'a-run',
        status: 'failed',
        attempts: 7,
        next_attempt_at: null,
        delivered_at: null,
        last_error: { code: 'answered', status: 404 },
      },
    ],
    next_cursor: null,
  });
});

test.each([
  ['GET', '/api/notifications?status=lost', 400, 'invalid_request'],
  ['GET', '/api/notifications?type=lost', 400, 'invalid_request'],
  ['GET', '/api/notifications?cursor=!!', 400, 'invalid_request'],
  ['POST', `/api/notifications/${randomUUID()}/redeliver`, 404, 'notification_not_found'],
  ['POST', '/api/notifications/1/redeliver', 400, 'invalid_request'],
])('%s %s is refused', async (method, path, status, code) => {
  const answer = await admin.call(method, path);
  expect([answer.status, answer.json.code]).toEqual([status, code]);
});

test('the command line shows them, and has one sent once more', async () => {
  const operate = (...args: string[]) => runMuster(['notifications', ...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN });
  const failed = await operate('--status', 'failed');
  expect([failed.code, failed.stdout.split('\n')]).toEqual([
    0,
    [
      expect.stringMatching(/^NOTIFICATION +OCCURRED +TYPE +ENVIRONMENT +COMPANY +NAME +STATUS +ATTEMPTS +NEXT +LAST ERROR$/),
      expect.stringMatching(
        new RegExp(
          `^${ids[0]} +\\S+ \\S+Z +run_failed +test +${company.companyId} +Company ${company.companyId.slice(0, 4)} +failed +7 +- +answered 404$`,
        ),
      ),
      '',
    ],
  ]);
  expect((await operate('list', '--json', '--type', 'deletions_held')).json()).toMatchObject([{ id: ids[1] }]);
  const again = await operate('redeliver', ids[0]!, '--json');
  expect(again.json()).toMatchObject([{ id: ids[0], status: 'pending', attempts: 0, last_error: null }]);
  expect(
    await admin.db.prisma.auditEntry.findFirst({
      where: { action: 'notification.redeliver', details: { path: ['outcome'], equals: 'done' } },
    }),
  ).toMatchObject({ details: { notification_id: ids[0] } });
});
