import type { Page } from 'playwright-core';
import { erasePath, recordPath } from '../../src/dashboard/parts/record-links.js';
import { waitFor } from '../support/wait-for.js';
import { COMPANIES, type Deployment } from './deployment.js';
import { addPastNights } from './past-nights.js';

interface FilledPage {
  readonly name: string;
  readonly path: string;
  /** Makes what the page is to show, just before. */
  readonly prepare?: () => Promise<unknown>;
  /** What a person presses there, and so comes to the page that is meant. */
  readonly press?: (page: Page) => Promise<unknown>;
}

/** Makes the newest walk of the company's employees one that rejected records. */
async function rejectSome({ prisma }: Deployment['database']['db'], companyId: string): Promise<void> {
  const { lastRunId } = await prisma.list.findFirstOrThrow({ where: { companyId, resource: 'employees' } });
  const { id } = await prisma.walk.findFirstOrThrow({ where: { runId: lastRunId!, resource: 'employees' } });
  if ((await prisma.rejectedRecord.count({ where: { walkId: id } })) > 0) return;
  await prisma.walk.update({ where: { id }, data: { rejected: 2 } });
  const text = Buffer.from(`{"name":"Kari Nordmann","notes":"${'without an id '.repeat(40)}"}`).toString('base64');
  for (const position of [3, 9])
    await prisma.rejectedRecord.create({ data: { walkId: id, pass: 1, page: 0, position, reason: 'no_id', text } });
}

interface RunAnswer {
  readonly run: { readonly id: string };
}

/** Mirrors the companies, which were mirrored before, has one that must authorize, one with a hold and a run that failed; returns every page, each with something on it. */
export async function fill(deployment: Deployment): Promise<readonly FilledPage[]> {
  const { call, sandbox, app, database } = deployment;
  const [giant, , held, blocked, hostile] = COMPANIES as [(typeof COMPANIES)[number], ...(typeof COMPANIES)[number][]];
  const onboard = (companyId: string) =>
    call('POST', '/api/companies', {
      environment: 'test',
      company_id: companyId,
      refresh_token: sandbox.issueRefreshToken(companyId).reveal(),
    });
  const sync = async (companyId: string, mode = 'full') => {
    const { run } = (await call('POST', `/api/companies/test/${companyId}/sync`, { mode })) as RunAnswer;
    return run.id;
  };
  const ended = (id: string) =>
    waitFor(async () => /succeeded|failed/.test((await app.runs.find(id))!.status), {
      what: `the end of run ${id}`,
    });
  const mirrored = async (companyId: string) => {
    const [run] = (await app.runs.list({ environment: 'test', companyId, limit: 1 })).data;
    await ended(run!.id);
    return run!.id;
  };

  await addPastNights(deployment);
  for (const { companyId } of [held!, blocked!, hostile!, giant]) await onboard(companyId);
  const done = await mirrored(held!.companyId);
  await mirrored(blocked!.companyId);
  await mirrored(hostile!.companyId);
  await database.db.pool.query(
    `DELETE FROM mirror.employees WHERE id = (SELECT min(id) FROM mirror.employees WHERE company_id = $1) AND company_id = $1`,
    [held!.companyId],
  );
  const verification = ((await call('POST', `/api/companies/test/${held!.companyId}/verify`)) as RunAnswer).run.id;
  await ended(verification);
  const list = sandbox.list(held!.companyId, 'employees');
  list.remove(0, list.size - 4);
  await ended(await sync(held!.companyId));
  sandbox.revoke(blocked!.companyId);
  const failed = await sync(blocked!.companyId);
  await ended(failed);
  await call('POST', `/api/companies/test/${hostile!.companyId}/pause`);
  await call('POST', '/api/tokens', { name: 'Kari Nordmann', role: 'operator' });
  await mirrored(giant.companyId);
  await database.db.pool.query(`UPDATE mirror.companies SET name = $1 WHERE company_id = $2`, [
    hostile!.name,
    hostile!.companyId,
  ]);
  const refused = { code: 'service_refused', message: 'GET /employees answered 403: this endpoint is not allowed' };
  const waitsFor = { environment: 'test', companyId: hostile!.companyId };
  const { id: waiting } = await database.db.prisma.run.create({
    data: {
      ...waitsFor,
      trigger: 'nightly',
      mode: 'resume',
      status: 'queued',
      attempts: 3,
      startAfter: new Date(Date.now() + 3_600_000),
      error: { code: 'walks_failed', message: '1 of the lists could not be walked.' },
      walks: {
        create: [
          { ...waitsFor, resource: 'departments', position: 0, status: 'succeeded', rejected: 2 },
          {
            ...waitsFor,
            resource: 'employees',
            position: 1,
            status: 'failed',
            error: refused,
            serviceSays: 'Your role lacks this list.',
          },
        ],
      },
    },
  });
  await call('POST', '/api/notifications/test');
  // A worker looks for issues every few seconds.
  const causes = ['reauthorization_required', 'deletions_held'];
  await waitFor(
    async () => (await database.db.prisma.issue.count({ where: { status: 'ongoing', cause: { in: causes } } })) === 2,
    {
      what: 'the issues of what is wrong',
    },
  );
  const certificate = () =>
    waitFor(async () => (await database.db.prisma.certificate.findFirst({ where: { jws: { not: null } } }))?.id, {
      what: 'a certificate',
    });
  const issue = await database.db.prisma.issue.findFirstOrThrow({ where: { cause: 'deletions_held' } });
  const press = (name: string) => async (page: Page) => {
    await page.getByRole('button', { name, exact: true }).first().click();
    await page.waitForURL(/\/act\//);
  };
  const { rows: people } = await database.db.pool.query<{ id: string }>(
    'SELECT id FROM mirror.employees WHERE company_id = $1 ORDER BY id LIMIT 1',
    [giant.companyId],
  );
  const person = { environment: 'test', company_id: giant.companyId, resource: 'employees', id: people[0]!.id };
  let made = 0;
  return [
    { name: 'overview', path: '/' },
    { name: 'issues', path: '/issues' },
    { name: 'issues-ended', path: '/issues?status=resolved' },
    { name: 'issue', path: `/issues/${issue.id}` },
    { name: 'unproved', path: '/unproved' },
    { name: 'companies', path: '/companies' },
    { name: 'companies-sorted', path: '/companies?sort=name&order=desc' },
    { name: 'companies-all', path: '/companies?q=a&all=1' },
    {
      name: 'companies-asked',
      path: '/companies?all=1',
      press: async (page) => {
        // Another number than the person has seen is always asked about.
        await page.locator('input[name="count"]').evaluate((input) => void Object.assign(input, { value: '1000' }));
        await page.getByRole('button', { name: /^Pause: all/ }).click();
        await page.waitForURL(/\/act\//);
      },
    },
    { name: 'companies-none', path: '/companies?q=nothing' },
    { name: 'not-done', path: '/companies?undone=company.pause' },
    { name: 'company', path: `/companies/test/${giant.companyId}` },
    { name: 'company-blocked', path: `/companies/test/${blocked!.companyId}` },
    { name: 'company-quiet-hours', path: `/companies/test/${hostile!.companyId}/quiet-hours` },
    { name: 'company-remove', path: `/companies/test/${hostile!.companyId}/remove` },
    { name: 'company-forget', path: `/companies/test/${hostile!.companyId}/forget` },
    { name: 'records', path: `/records?company=${giant.companyId}&q=a` },
    { name: 'records-none', path: `/records?company=${giant.companyId}&q=nobody+like+this` },
    { name: 'records-which', path: '/records?q=a' },
    { name: 'record', path: recordPath(person) },
    { name: 'record-unknown', path: recordPath({ ...person, id: 'nobody' }) },
    { name: 'record-erase', path: erasePath(person) },
    { name: 'connect', path: '/companies/connect' },
    { name: 'runs', path: '/runs' },
    { name: 'runs-of-a-night', path: `/runs?since=${new Date(Date.now() - 2 * 86_400_000).toISOString()}` },
    { name: 'run', path: `/runs/${done}` },
    { name: 'run-failed', path: `/runs/${failed}` },
    { name: 'run-waiting', path: `/runs/${waiting}` },
    { name: 'run-verify', path: `/runs/${verification}` },
    { name: 'diff', path: `/runs/${done}/diff?resource=employees` },
    {
      name: 'company-running',
      path: `/companies/test/${giant.companyId}`,
      prepare: async () => {
        // While the run of the look before goes on, there would be no other one.
        await mirrored(giant.companyId);
        // Long enough to be watched.
        sandbox.faults.add({ kind: 'delay', ms: 1_500 }, { path: '/employees', times: 20 });
        return sync(giant.companyId);
      },
    },
    { name: 'holds', path: '/holds' },
    { name: 'hold', path: '/holds', press: press('Approve') },
    { name: 'syncs', path: '/syncs?environment=test' },
    { name: 'holds-approve-grants', path: '/holds/approve-grants/test' },
    { name: 'certificates', path: '/certificates' },
    { name: 'certificate', path: `/certificates/${await certificate()}` },
    { name: 'schema', path: '/schema' },
    { name: 'notifications', path: '/notifications' },
    { name: 'audit', path: '/audit' },
    { name: 'companies-by-list', path: '/companies?resource=employees&proof=verified' },
    { name: 'rejected', path: '/rejected', prepare: () => rejectSome(database.db, held!.companyId) },
    { name: 'company-rejected', path: `/companies/test/${held!.companyId}` },
    { name: 'queue', path: '/queue' },
    { name: 'tokens', path: '/tokens' },
    { name: 'settings', path: '/settings' },
    { name: 'no-such-run', path: '/runs/00000000-0000-4000-8000-000000000009' },
    { name: 'no-such-company', path: '/companies/test/00000000-0000-4000-8000-000000000009' },
    { name: 'no-such-page', path: '/nowhere' },
    { name: 'empty-list', path: '/runs?status=cancelled' },
    { name: 'refused', path: '/companies/connect', press: press('Make a link') },
    {
      name: 'link-made',
      path: '/companies/connect',
      press: async (page) => {
        await page.getByLabel('Environment').selectOption('test');
        await press('Make a link')(page);
      },
    },
    { name: 'links-made', path: '/', press: press('Make the links') },
    {
      name: 'token-made',
      path: '/tokens',
      press: async (page) => {
        await page.getByLabel('Name').fill(`night watch ${++made}`);
        await press('Make the token')(page);
      },
    },
    {
      name: 'selection-done',
      path: '/companies',
      press: async (page) => {
        for (const box of await page.getByRole('checkbox').all()) await box.check();
        await press('Resume selected')(page);
      },
    },
    { name: 'selection-empty', path: '/companies', press: press('Sync selected') },
  ];
}
