import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { runMuster } from '../run-muster.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

const connectLink = (...args: string[]) =>
  runMuster(['connect-link', ...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN });

test('prints the address, and nothing else on standard output', async () => {
  const { code, stdout, stderr } = await connectLink('--environment', 'production');
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^https:\/\/muster\.example\/connect\/[\w-]{43}\n$/)]);
  expect(stderr).toMatch(/^Good for one company, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\.\n$/);
});

test('names the company, and prints JSON for programs', async () => {
  const companyId = randomUUID();
  const { code, stderr, ...outcome } = await connectLink('--environment', 'test', '--company', companyId.toUpperCase(), '--json');
  expect([code, stderr]).toEqual([0, '']);
  expect(outcome.json()).toEqual([{ url: expect.stringContaining('/connect/'), expires_at: expect.any(String) }]);
  expect(await admin.db.prisma.connectLink.count({ where: { companyId, environment: 'test' } })).toBe(1);
});

test('needs an environment, and a GUID', async () => {
  expect((await connectLink()).code).toBe(2);
  expect((await connectLink('--environment', 'test', '--company', 'x')).code).toBe(2);
});
