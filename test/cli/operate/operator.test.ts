import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { MusterError } from '../../../src/core/errors.js';
import { Secret } from '../../../src/core/secret.js';
import { type AdminFixture, startAdmin, TOKEN, writeChanges } from '../../api/admin-fixture.js';
import { waitFor } from '../../process/wait-for.js';
import { emptyDatabase } from '../../support/database.js';
import { startMuster } from '../../support/process.js';
import { HOME, runMuster } from '../run-muster.js';

let admin: AdminFixture;
let company: CompanyKey;
beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
  const lastVerifiedAt = new Date('2026-01-02T03:04:05Z');
  await admin.db.prisma.list.createMany({
    data: [
      { ...company, resource: 'employees', records: 37, lastVerifiedAt },
      { ...company, resource: 'departments', records: 2, lastVerifiedAt: new Date('2026-01-03T03:04:05Z') },
    ],
  });
});
afterAll(() => admin.stop());

const operate = (args: readonly string[], input?: string) =>
  runMuster([...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN }, input);
const of = ({ environment, companyId }: CompanyKey) => ['--environment', environment, '--company', companyId];

describe('the admin token', () => {
  test('is found under MUSTER_HOME, and the address in PUBLIC_URL', async () => {
    const home = path.join(HOME, 'with-token');
    mkdirSync(home);
    writeFileSync(path.join(home, 'admin-token'), `${TOKEN}\n`);
    const { code, stderr } = await runMuster(['companies'], { MUSTER_HOME: home, PUBLIC_URL: admin.url });
    expect([code, stderr]).toEqual([0, '']);
  });

  /** Another program of this machine: its address, and the paths that it was asked for. */
  async function otherProgram(answer: string): Promise<{ url: string; asked: string[] }> {
    const asked: string[] = [];
    const server = createServer(({ url = '' }, response) => {
      asked.push(url);
      response.end(answer);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
  }

  test('is sent to HOST:PORT where PUBLIC_URL leads nowhere, and never to another program', async () => {
    const { port } = new URL(admin.url);
    const here = { MUSTER_ADMIN_TOKEN: TOKEN, PUBLIC_URL: 'http://127.0.0.1:1', HOST: '0.0.0.0', PORT: port };
    expect((await runMuster(['companies'], here)).code).toBe(0);

    const { url, asked } = await otherProgram('<!doctype html>');
    const there = { ...here, PUBLIC_URL: admin.url, PORT: new URL(url).port };
    expect((await runMuster(['companies'], there)).code).toBe(0);
    expect(asked).toEqual(['/healthz']);
  });

  test.each(['<!doctype html>', '{"status":"ok"}'])('is not sent where only another program answers %s', async (answer) => {
    const { url, asked } = await otherProgram(answer);
    const { code, stderr } = await runMuster(['companies'], {
      MUSTER_ADMIN_TOKEN: TOKEN,
      PUBLIC_URL: url,
      PORT: new URL(url).port,
    });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/which is not how Muster answers: give the address/)]);
    expect(new Set(asked)).toEqual(new Set(['/healthz']));
  });

  test('is sent where `muster up` listens, unless PORT says another place', async () => {
    const home = path.join(HOME, 'with-up');
    mkdirSync(home);
    const announce = (url: string) => writeFileSync(path.join(home, 'up.json'), JSON.stringify({ pid: process.pid, url }));
    const env = { MUSTER_ADMIN_TOKEN: TOKEN, MUSTER_HOME: home, PUBLIC_URL: 'http://127.0.0.1:1' };
    announce(admin.url);
    expect((await runMuster(['companies'], env)).code).toBe(0);

    const otherUp = await otherProgram('{"status":"ok"}');
    announce(otherUp.url);
    expect((await runMuster(['companies'], { ...env, PORT: new URL(admin.url).port })).code).toBe(0);
    expect(otherUp.asked).toEqual([]);
  });

  test('is asked for when there is none, and when it is wrong', async () => {
    const none = await runMuster(['companies', '--url', admin.url], { MUSTER_HOME: path.join(HOME, 'empty') });
    expect([none.code, none.stderr]).toEqual([2, expect.stringMatching(/^muster: No admin token: set MUSTER_ADMIN_TOKEN/)]);
    const wrong = await runMuster(['companies', '--url', admin.url], { MUSTER_ADMIN_TOKEN: 'a-wrong-admin-token' });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/refused the token/)]);
    expect(wrong.stderr).not.toContain('a-wrong-admin-token');
  });
});

describe('companies', () => {
  test('are listed as a table', async () => {
    const { code, stdout } = await operate(['companies']);
    const [heading, row] = stdout.split('\n');
    expect([code, heading]).toEqual([0, expect.stringMatching(/^ENVIRONMENT +COMPANY +NAME +STATUS +RECORDS/)]);
    expect(row).toMatch(
      new RegExp(`^test +${company.companyId} +Company \\w+ +active +departments 2, employees 37 +2026-01-02 03:04:05Z`),
    );
  });

  test('are listed for programs, and shown one by one', async () => {
    const list = await operate(['companies', '--json', '--status', 'active']);
    expect(list.json()).toMatchObject([{ company_id: company.companyId, status: 'active' }]);
    const one = await operate(['companies', ...of(company)]);
    expect(one.stdout).toMatch(/^RESOURCE +RECORDS +STATE +SINCE +LAST VERIFIED/m);
    const none = await operate(['companies', '--environment', 'test', '--company', randomUUID()]);
    expect([none.code, none.stdout, none.stderr]).toEqual([1, '', expect.stringMatching(/\[company_not_found\]\n$/)]);
  });

  test('are found by a part of the name, and come with the worst first', async () => {
    const worse = await admin.addCompany({}, { reauthorizationReason: 'token_refused' });
    const ids = async (...options: string[]) =>
      (await operate(['companies', '--json', ...options])).json().map(({ company_id: id }: { company_id: string }) => id);
    expect(await ids('--sort', 'worst')).toEqual([worse.companyId, company.companyId]);
    expect(await ids('--search', `COMPANY ${worse.companyId.slice(0, 4)}`)).toEqual([worse.companyId]);
    expect((await operate(['companies', '--sort', 'best'])).code).toBe(2);
    await admin.call('DELETE', `/api/companies/test/${worse.companyId}`);
  });
});

describe('onboard', () => {
  const REFRESH_TOKEN = 'canary-refresh-token-7c1f';
  const onboard = (companyId: string) => ['onboard', '--environment', 'test', '--company', companyId];

  test('takes the refresh token from standard input', async () => {
    const companyId = randomUUID();
    const { code, stdout, stderr } = await operate([...onboard(companyId.toUpperCase()), '--json'], `${REFRESH_TOKEN}\n`);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { company_id: companyId, status: 'active' }]);
    expect(admin.spent.at(-1)).toBe(REFRESH_TOKEN);
    expect(stdout + stderr + admin.log()).not.toContain(REFRESH_TOKEN);
  });

  test('takes it from a file', async () => {
    const file = path.join(HOME, 'refresh-token');
    writeFileSync(file, 'from-a-file\n');
    expect((await operate([...onboard(randomUUID()), '--refresh-token-file', file])).code).toBe(0);
    expect(admin.spent.at(-1)).toBe('from-a-file');
  });

  test('exits with 1 and says why it was refused', async () => {
    admin.refusal = new MusterError('token_refused', 'The service refused the refresh token.');
    const { code, stderr } = await operate(onboard(randomUUID()), REFRESH_TOKEN);
    admin.refusal = undefined;
    expect([code, stderr]).toEqual([1, 'muster: The service refused the refresh token. [token_refused]\n']);
  });
});

describe('sync', () => {
  /** Stands in for the worker: ends the company's run. */
  const endRun = async (status: string) => {
    const run = await waitFor(() => admin.db.prisma.run.findFirst({ where: { ...company, status: 'queued' } }));
    await admin.db.prisma.walk.updateMany({
      where: { runId: run.id },
      data: { status, verified: status === 'succeeded', proof: 'join' },
    });
    await admin.db.prisma.run.update({ where: { id: run.id }, data: { status, finishedAt: new Date() } });
  };

  test('waits for the end of the run', async () => {
    const [{ code, stdout }] = await Promise.all([
      operate(['sync', ...of(company), '--resources', 'employees', '--mode', 'full', '--wait']),
      endRun('succeeded'),
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/manual +succeeded .* 1 of 1$/m);
    expect(stdout).toMatch(/^employees +succeeded .*join$/m);
  });

  test('exits with 1 when the run failed', async () => {
    const [{ code, stderr, ...outcome }] = await Promise.all([
      operate(['sync', ...of(company), '--wait', '--json']),
      endRun('failed'),
    ]);
    expect([code, stderr]).toEqual([1, 'muster: The run failed.\n']);
    expect(outcome.json()).toMatchObject([{ company_id: company.companyId, status: 'failed' }]);
  });

  test('asks for many without waiting', async () => {
    expect((await operate(['sync', '--failed', '--json'])).json()).toEqual([{ queued: 1 }]);
    await endRun('succeeded');
  });

  test('asks for the companies of an issue and its list, or for some lists of many, and names what is skipped', async () => {
    const lost = await admin.addCompany({}, { reauthorizationReason: 'token_refused' });
    const issue = await admin.db.prisma.issue.create({
      data: { cause: 'reauthorization_required', environment: 'test', severity: 'action', companies: 1, told: 1, sample: [] },
    });
    const { code, stdout, stderr } = await operate(['sync', '--issue', issue.id]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^QUEUED +SKIPPED\n +0 +1\n/)]);
    expect(stderr).toMatch(/^skipped: Company \w+ \(test\): reauthorization_required\n/);
    await admin.db.prisma.connection.delete({ where: { environment_companyId: lost } });
    await admin.db.prisma.issue.deleteMany();
    expect((await operate(['sync', '--resources', 'departments', '--json'])).code).toBe(0);
    const run = await admin.db.prisma.run.findFirstOrThrow({ where: { ...company, status: 'queued' }, include: { walks: true } });
    expect(run.walks).toMatchObject([{ resource: 'departments' }]);
    await endRun('succeeded');
  });
});

describe('runs', () => {
  test('are listed, shown and cancelled', async () => {
    const { id } = await admin.runs.request({ company, trigger: 'manual' });
    const list = await operate(['runs', '--json', '--limit', '1']);
    expect(list.json()).toMatchObject([{ id, status: 'queued' }]);
    const shown = await operate(['runs', 'show', id]);
    expect([shown.code, shown.stdout]).toEqual([0, expect.stringMatching(/^RESOURCE +STATUS +PAGES/m)]);
    const cancelled = await operate(['runs', 'cancel', id, '--json']);
    expect(cancelled.json()).toMatchObject([{ id, status: 'cancelled' }]);
    expect((await operate(['runs', 'show', '../companies'])).code).toBe(2);
    expect((await operate(['runs', 'show', randomUUID()])).code).toBe(1);
  });
});

describe('holds', () => {
  test('are listed, and decided on', async () => {
    const { id } = await admin.db.prisma.hold.create({
      data: {
        ...company,
        resource: 'employees',
        runId: randomUUID(),
        walkId: randomUUID(),
        count: 30,
        living: 37,
        sample: ['a'],
      },
    });
    expect((await operate(['holds', '--status', 'open', '--json'])).json()).toEqual([
      expect.objectContaining({ id, count: 30, living: 37 }),
    ]);
    expect((await operate(['holds', 'reject', id, '--reason', 'Still here.'])).stdout).toContain('rejected');
    const { stdout } = await operate(['holds', 'show', id]);
    expect(stdout).toMatch(/DECIDED BY +DECIDED +REASON/);
    expect(stdout).toMatch(/rejected .* admin +20\d\d-.*Still here\.$/m);
    expect((await operate(['holds', 'show', id, '--rows'])).stderr).toContain('hold_not_open');
    const again = await operate(['holds', 'approve', id]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('hold_not_open')]);
  });
});

describe('pause, resume, remove', () => {
  test('change one company', async () => {
    const other = await admin.addCompany();
    expect((await operate(['pause', ...of(other), '--json'])).json()).toMatchObject([{ status: 'paused' }]);
    expect((await operate(['sync', ...of(other)])).stderr).toMatch(/\[company_paused\]/);
    expect((await operate(['resume', ...of(other)])).stdout).toMatch(/active/);
    expect((await operate(['remove', ...of(other), '--json'])).json()).toEqual([
      { environment: 'test', company_id: other.companyId, removed: true },
    ]);
    expect((await operate(['remove', ...of(other), '--yes'])).code).toBe(1);
  });
});

describe('rekey', () => {
  test('asks nothing where there is no terminal', async () => {
    const rekeyed = await operate(['rekey', ...of(company), '--resource', 'employees', '--json']);
    expect([rekeyed.code, rekeyed.json()]).toEqual([0, [{ resource: 'employees', deleted: 0 }]]);
  });
});

describe('changes', () => {
  test('are printed with every digit for programs, and as a table for people', async () => {
    await writeChanges(admin.db, company, [{ id: 'a' }, { id: 'b', data: '{"id": 9007199254740993}' }]);
    await writeChanges(admin.db, company, [{ id: 'c' }], 'departments');
    const { stdout } = await operate(['changes', '--json', '--after', '1', '--resource', 'employees']);
    expect(stdout.split('\n')).toEqual([expect.stringMatching(/^\{"seq":2,.*"data":\{"id": 9007199254740993\}\}$/), '']);
    const newest = await operate(['changes', '--limit', '1']);
    expect(newest.stderr).toBe('Older changes follow: see more with --limit.\n');
    expect(newest.stdout).toMatch(/^SEQ .*\n +3 .* departments +test .* c\n$/);
    const own = ['changes', '--company', company.companyId, '--environment', company.environment];
    expect((await operate([...own, '--id', 'b'])).stdout).toMatch(/^SEQ .*\n +2 .* b\n$/);
    expect((await operate([...own, '--resource', 'employees'])).stdout).toMatch(/^SEQ .*\n +2 .* b\n +1 .* a\n$/);
    const both = await operate(['changes', '--tail', '--after', '1']);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('leave out --after')]);
    const table = await operate(['changes', '--after', '0', '--limit', '1']);
    expect(table.stderr).toBe('More changes follow: continue with --after 1.\n');
    expect((await operate(['changes', '--after', '1', '--limit', '2'])).stderr).toBe('');
    expect(table.stdout).toMatch(/^SEQ +CHANGED .*\n +1 +2026-01-02 03:04:05Z +insert +employees +test .* a\n$/);
  });
});

describe('status', () => {
  test('gives an overview', async () => {
    const { code, stdout } = await operate(['status', '--json']);
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      {
        ready: true,
        companies: { paused: 0 },
        lists: { verified: 0, late: 1 },
        runs: { queued: expect.any(Number), running: 0 },
        companies_last_run_failed: 0,
        holds_open: 0,
        issues_open: 0,
      },
    ]);
    const overview = (await admin.call('GET', '/api/overview')).json as object;
    // A run grows older between the two calls on a busy machine.
    expect(JSON.parse(stdout)).toMatchObject({ ...overview, oldest_waiting_seconds: expect.any(Number) as number });
    const text = (await operate(['status'])).stdout;
    expect(text).toMatch(/^ready +yes\ncompanies +\d+ active, 0 paused/);
    expect(text).toMatch(/^workers +none, so nothing is fetched/m);
    expect(text).toMatch(/^last night +(No night has begun|Last night is) /m);
  });

  test('is given where METRICS_TOKEN closes the metrics', async () => {
    const closed = await startAdmin(undefined, { metricsToken: new Secret('a-scraper-token-of-tests') });
    onTestFinished(() => closed.stop());
    const { code, stderr } = await runMuster(['status', '--url', closed.url], { MUSTER_ADMIN_TOKEN: TOKEN });
    expect([code, stderr]).toEqual([0, '']);
  });

  test('exits with 1 and names the part that is missing', async () => {
    admin.readiness.push({ name: 'queue', check: () => Promise.reject(new Error('away')) });
    // The overview is kept for two seconds.
    const { code, stdout, stderr } = await waitFor(async () => {
      const result = await operate(['status']);
      return result.code === 1 ? result : undefined;
    });
    admin.readiness.pop();
    expect([code, stderr]).toEqual([1, 'muster: Muster is not ready.\n']);
    expect(stdout).toMatch(/^ready +no: queue failed\ncompanies +\d+ active/);
  });
});

describe('issues', () => {
  test('that are ongoing are listed, counted by the status, and shown with what to do', async () => {
    const issue = { environment: 'test', severity: 'warning', companies: 7, sample: [company.companyId], told: 7 };
    const { id } = await admin.db.prisma.issue.create({ data: { ...issue, cause: 'service_error', resource: 'employees' } });
    await admin.db.prisma.issue.create({ data: { ...issue, cause: 'list_late', status: 'resolved' } });
    const { code, stdout } = await operate(['issues']);
    const [heading, row, ...rest] = stdout.split('\n');
    expect([code, heading, rest]).toEqual([
      0,
      expect.stringMatching(/^ISSUE +CAUSE +ENVIRONMENT +RESOURCE +SEVERITY +COMPANIES +SINCE +LAST SEEN +STATUS$/),
      [''],
    ]);
    expect(row).toMatch(new RegExp(`^${id} +service_error +test +employees +warning +7 +\\S+ \\S+Z +\\S+ \\S+Z +ongoing$`));
    expect((await operate(['issues', '--status', 'resolved', '--json'])).json()).toMatchObject([{ cause: 'list_late' }]);
    expect((await operate(['issues', 'show', id, '--json'])).json()).toMatchObject([{ id }]);
    const shown = await operate(['issues', 'show', id]);
    expect(shown.stdout).toMatch(/sync again\.\nhttps:\S+#service_error\n\n/);
    expect(shown.stdout).toContain(`muster sync --issue ${id}`);
    expect((await operate(['issues', 'show', randomUUID()])).code).toBe(1);
    // What the token endpoint answered has a column where there is such an answer.
    const where = { environment_companyId: company };
    const failing = {
      transientFailures: 2,
      putOffs: 2,
      lastFailure: 'service_refused',
      lastStatus: 400,
      lastError: 'access_denied',
    };
    await admin.db.prisma.token.update({ where, data: failing });
    await admin.db.prisma.issue.create({ data: { ...issue, cause: 'token_put_off' } });
    expect((await operate(['issues'])).stdout).toMatch(
      /STATUS +TOKEN ANSWERS\n\S+ +token_put_off .* ongoing +400 access_denied \(to 1\)\n/,
    );
    await admin.db.prisma.token.update({ where, data: { transientFailures: 0 } });
    await admin.db.prisma.issue.deleteMany({ where: { cause: 'token_put_off' } });
    const snoozed = await operate(['issues', 'snooze', id, '--until', '3d', '--reason', 'they move']);
    expect([snoozed.code, snoozed.stdout]).toEqual([0, expect.stringContaining('SNOOZED UNTIL')]);
    expect((await operate(['issues', '--snoozed', 'true', '--json'])).json()).toMatchObject([
      { id, snoozed: { reason: 'they move' } },
    ]);
    // The overview is kept for two seconds.
    await waitFor(async () => /^open issues +0, and 1 snoozed: see `muster issues`$/m.test((await operate(['status'])).stdout));
    expect((await operate(['issues', 'snooze', id, '--until', 'soon', '--reason', 'they move'])).code).toBe(2);
    expect((await operate(['issues', 'unsnooze', id])).code).toBe(0);
    expect((await operate(['issues', '--snoozed', 'true', '--json'])).stdout).toBe('');
    // The overview is kept for two seconds.
    await waitFor(async () => /^open issues +1: see `muster issues`$/m.test((await operate(['status'])).stdout));
  });
});

describe('last-night', () => {
  test('answers in a sentence, and lists what lacks a proof', async () => {
    const { code, stdout } = await operate(['last-night']);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^(No night has begun|Last night is) /)]);
    expect((await operate(['last-night', '--state', 'failed', '--json'])).code).toBe(0);
  });

  test('names each company once', async () => {
    const { companyId } = await admin.addCompany();
    onTestFinished(async () => void (await admin.db.prisma.connection.deleteMany({ where: { companyId } })));
    await admin.db.prisma.connection.updateMany({ where: { companyId }, data: { createdAt: new Date('2026-01-01T00:00:00Z') } });
    const { stdout } = await operate(['last-night']);
    expect(stdout).toMatch(/^ENVIRONMENT +COMPANY +NAME +RESOURCE /m);
    expect(stdout).toMatch(new RegExp(`^test +${companyId} +Company ${companyId.slice(0, 4)} +employees `, 'm'));
  });
});

describe('sandbox', () => {
  test('prints what to set, and stops when told to', async () => {
    const running = startMuster(['sandbox', '--refresh-tokens']);
    const [, url] = await running.waitForOutput(/TEST_BASE_URL=(\S+) TEST_AUTH_URL=/);
    await running.waitForOutput(/REFRESH TOKEN[\s\S]*Nordlia/);
    expect((await fetch(`${url}/sandbox/`)).status).toBe(200);
    running.kill('SIGTERM');
    expect(await running.exit).toEqual({ code: 0, signal: null });
  });

  test('says the same to programs', async () => {
    const running = startMuster(['sandbox', '--json', '--refresh-tokens']);
    const [line] = await running.waitForOutput(/^\{.*\}\n/);
    expect(JSON.parse(line)).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      client_id: 'muster-sandbox',
      client_secret: expect.any(String),
      companies: expect.arrayContaining([
        { company_id: expect.any(String), name: 'Ekdal Regnskap', employees: 1, refresh_token: expect.any(String) },
      ]),
    });
    running.kill('SIGTERM');
    await running.exit;
    expect(running.stdout).toBe(line);
  });
});

describe('migrate', () => {
  test('applies what is missing, once', async () => {
    const { url, close } = await emptyDatabase();
    const env = { DATABASE_URL: url, MUSTER_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}` };
    try {
      const first = await runMuster(['migrate', '--json'], env);
      expect([first.code, first.json()]).toEqual([0, expect.arrayContaining([{ migration: expect.stringMatching(/_init$/) }])]);
      const second = await runMuster(['migrate'], env);
      expect([second.code, second.stdout]).toEqual([0, 'The database is up to date.\n']);
    } finally {
      await close();
    }
  });
});
