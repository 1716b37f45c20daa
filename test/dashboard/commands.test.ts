import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ACTIONS, type ActionName } from '../../src/dashboard/parts/actions.js';
import { type AdminFixture, startAdmin } from '../api/admin-fixture.js';
import { PageClient } from './page-client.js';

// Whatever a person can press, a script can do: the page of a button shows the command that does the same.

/** What a button of a page would send. */
interface Button {
  readonly path: string;
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
}

let admin: AdminFixture;
let page: PageClient;
let paths: string[];
beforeAll(async () => {
  admin = await startAdmin(undefined, { webhook: {} });
  const { prisma } = admin.db;
  const company = await admin.addCompany();
  await prisma.run.create({ data: { ...(await admin.addCompany()), trigger: 'manual', mode: 'full', status: 'failed' } });
  const paused = await admin.addCompany({}, { paused: true });
  const run = randomUUID();
  await prisma.run.create({ data: { id: run, ...company, trigger: 'manual', mode: 'full', status: 'running' } });
  const failed = randomUUID();
  const error = { code: 'service_error', message: 'The service failed.' };
  await prisma.run.create({
    data: { id: failed, ...(await admin.addCompany()), trigger: 'manual', mode: 'full', status: 'failed', error },
  });
  const list = { ...company, resource: 'employees', runId: run, walkId: randomUUID() };
  const held = await prisma.hold.create({ data: { ...list, count: 4, living: 5, sample: ['1'], status: 'open' } });
  await prisma.hold.create({ data: { ...list, cause: 'grant', grantNumber: 2, count: 1, living: 5, sample: ['2'] } });
  await prisma.notification.create({ data: { ...company, type: 'run_failed', change: randomUUID() } });
  for (const cause of ['reauthorization_required', 'service_error', 'list_late', 'tokens_held'])
    await prisma.issue.create({ data: { cause, environment: 'test', severity: 'action', companies: 1, told: 1, sample: [] } });
  const open = await prisma.issue.findFirstOrThrow();
  const snooze = { snoozedUntil: new Date(Date.now() + 60_000), snoozeReason: 'because', snoozedBy: 'kari' };
  const more = { severity: 'action', companies: 1, told: 1, sample: [], ...snooze };
  const snoozed = await prisma.issue.create({ data: { cause: 'list_late', environment: 'production', ...more } });
  await admin.call('POST', '/api/tokens', { name: 'night watch', role: 'viewer' });
  const pageOf = ({ environment, companyId }: typeof company) => `/companies/${environment}/${companyId}`;
  paths = [
    '/',
    '/companies',
    '/companies/connect',
    pageOf(company),
    `${pageOf(company)}/forget`,
    `${pageOf(company)}/remove`,
    `${pageOf(company)}/quiet-hours`,
    pageOf(paused),
    '/records',
    `/records/${company.environment}/${company.companyId}/employees/1`,
    `${pageOf(company)}/forget?resource=employees&id=1`,
    '/runs',
    `/runs/${run}`,
    `/runs/${failed}`,
    '/holds',
    `/holds/${held.id}`,
    '/holds/approve-grants/test',
    '/syncs?status=failed',
    '/syncs?environment=test',
    '/issues',
    `/issues/${open.id}`,
    `/issues/${snoozed.id}`,
    '/unproved',
    '/certificates',
    '/schema',
    '/notifications',
    '/audit',
    '/queue',
    '/rejected',
    '/tokens',
    '/settings',
  ];
  page = await PageClient.signedIn(admin.url);
});
afterAll(() => admin.stop());

/** The buttons of every form that does something, also those of a form with several. */
function buttonsOf(path: string, html: string): Button[] {
  return [...html.matchAll(/<form[^>]* action="\/act\/([^"]+)"[^>]*>(.*?)<\/form>/gs)].flatMap(([, named, form]) => {
    const inputs = [...form!.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)];
    const fields = Object.fromEntries(inputs.map(([, name, value]) => [name!, value!]));
    if (named !== 'selection') {
      const others = [...form!.matchAll(/formaction="\/act\/([^"]+)"/gi)].map(([, other]) => other!);
      return (others.length > 0 ? others : [named!]).map((name) => ({ path, name, fields }));
    }
    const [, environment = '', company_id = ''] = /name="company" value="([^/"]+)\/([^"]+)"/.exec(form!) ?? [];
    return [...form!.matchAll(/<button name="action" value="([^"]+)"/g)].map(([, name]) => ({
      path,
      name: name!,
      fields: { environment, company_id },
    }));
  });
}

const unescaped = (html: string) =>
  html
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

test('every action has a button, and every page with its button the command that does the same', async () => {
  const seen = new Set<string>();
  for (const path of paths) {
    const { status, html } = await page.open(path);
    expect([path, status]).toEqual([path, 200]);
    const buttons = buttonsOf(path, html);
    const commands = [...html.matchAll(/<pre[^>]*>(.*?)<\/pre>/gs)].map(([, command]) => unescaped(command!));
    for (const name of new Set(buttons.map((button) => button.name))) {
      // A person fills in some of the fields, and where a list has many buttons of a name, the command of one stands for all.
      const wanted = buttons
        .filter((button) => button.name === name)
        .map(({ fields }) => ACTIONS[name as ActionName].call(fields))
        .map(({ method, path: call }) => `curl -sS -X ${method} 'https://muster.example${call}'`);
      const isShown = commands.some((command) => wanted.some((one) => command.startsWith(`${one} \\\n`)));
      expect([path, name, isShown]).toEqual([path, name, true]);
      seen.add(name);
    }
  }
  expect([...seen].toSorted()).toEqual(Object.keys(ACTIONS).toSorted());
});

test('a command does what its button does', async () => {
  const { html } = await page.open('/notifications');
  const command = [...html.matchAll(/<pre[^>]*>(.*?)<\/pre>/gs)]
    .map(([, text]) => unescaped(text!))
    .find((text) => /\/[0-9a-f-]{36}\/redeliver/.test(text));
  const [, method, call] = /-X (\w+) 'https:\/\/muster\.example([^']+)'/.exec(command!)!;
  expect((await admin.call(method!, call!)).status).toBe(200);
});
