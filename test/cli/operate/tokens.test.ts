import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { runMuster } from '../run-muster.js';

let admin: AdminFixture;
beforeAll(async () => void (admin = await startAdmin()));
afterAll(() => admin.stop());

const operateAs = (token: string, ...args: string[]) => runMuster([...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: token });
const operate = (...args: string[]) => operateAs(TOKEN, ...args);

test('makes a token, which stands alone on standard output, and lists and removes it', async () => {
  const added = await operate('tokens', 'add', 'Anna', '--role', 'operator', '--expires', '90d');
  expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/^muster_[\w-]{43}\n$/)]);
  expect(added.stderr).toMatch(/until \d{4}-\d\d-\d\d .*shown only once/);
  const [listed] = (await operate('tokens', '--json')).json();
  expect(listed).toMatchObject({ name: 'Anna', role: 'operator', created_by: 'admin' });
  expect(Date.parse(listed.expires_at) - Date.now()).toBeCloseTo(90 * 86_400_000, -6);
  const table = (await operate('tokens')).stdout;
  expect(table).toMatch(/^TOKEN +NAME +ROLE +CREATED +BY +EXPIRES +LAST USED\n.*Anna +operator/);
  expect(table).not.toContain('muster_');

  const token = added.stdout.trim();
  expect((await operateAs(token, 'companies')).code).toBe(0);
  const refused = await operateAs(token, 'tokens', 'add', 'another', '--role', 'viewer');
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([
    1,
    '',
    'muster: This call needs the role admin; your token has the role operator. [forbidden]\n',
  ]);

  expect((await operate('tokens', 'remove', 'anna')).stdout).toBe('DELETED\nAnna\n');
  const after = await operateAs(token, 'companies');
  expect([after.code, after.stderr]).toEqual([2, expect.stringMatching(/refused the token/)]);
  const again = await operate('tokens', 'remove', 'anna');
  expect([again.code, again.stderr]).toEqual([1, expect.stringMatching(/no token with this name or id/)]);
});

test('takes a time as an end, and an id as a name', async () => {
  const [made] = (await operate('tokens', 'add', 'b', '--role', 'viewer', '--expires', '2099-01-31', '--json')).json();
  expect(made).toMatchObject({ name: 'b', role: 'viewer', expires_at: '2099-01-31T00:00:00.000Z' });
  expect((await operate('tokens', 'remove', made.id)).code).toBe(0);
});

test.each([
  [['add', 'c'], /--role/],
  [['add', 'c', '--role', 'boss'], /viewer, operator, admin/],
  [['add', 'c', '--role', 'viewer', '--expires', 'soon'], /90d/],
  [['add', 'c', '--role', 'viewer', '--expires', '2020-01-31'], /lies in the past/],
])('refuses %j', async (args, message) => {
  const { code, stderr } = await operate('tokens', ...args);
  expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
});

test('the audit is filtered, and printed as CSV', async () => {
  await operate('tokens', 'add', 'csv', '--role', 'viewer');
  const filtered = (await operate('audit', '--action', 'token.create', '--actor', 'admin', '--limit', '1', '--json')).json();
  expect(filtered).toMatchObject([{ action: 'token.create', role: 'admin', details: { name: 'csv' } }]);
  const { stdout } = await operate('audit', '--action', 'token.create', '--csv');
  expect(stdout).toMatch(
    /^id,at,actor,role,action,environment,company_id,details\r\n(\d+,\S+,admin,admin,token.create,,,".*"\r\n)+$/,
  );
  await admin.db.prisma.auditEntry.createMany({ data: Array.from({ length: 600 }, () => ({ actor: 'many', action: 'x' })) });
  expect((await operate('audit', '--actor', 'many', '--csv')).stdout.trimEnd().split('\r\n').length).toBe(601);
  expect((await operate('audit', '--actor', 'many')).stdout.trimEnd().split('\n').length).toBe(21);
  const both = await operate('audit', '--csv', '--json');
  expect([both.code, both.stderr]).toEqual([2, expect.stringMatching(/cannot be used with/)]);
});
