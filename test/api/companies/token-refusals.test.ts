import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type CompanyKey, keyText } from '../../../src/core/company.js';
import { PageClient } from '../../dashboard/page-client.js';
import { sweepOf } from '../../runs/issue-world.js';
import { emptyTables } from '../../support/empty-tables.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;

beforeAll(async () => {
  admin = await startAdmin();
});
beforeEach(async () => {
  await emptyTables(admin.db, 'muster.issues', 'muster.connections');
});
afterAll(() => admin.stop());

/** A company whose last refresh failed so. */
async function company(token: object, reauthorizationReason?: string): Promise<CompanyKey> {
  const added = await admin.addCompany({}, reauthorizationReason === undefined ? {} : { reauthorizationReason });
  const data = { transientFailures: 1, putOffs: 1, lastFailure: 'service_refused', expiresAt: new Date(Date.now() + 600_000) };
  await admin.db.prisma.token.update({ where: { environment_companyId: added }, data: { ...data, ...token } });
  return added;
}

const path = ({ environment, companyId }: CompanyKey) => `/companies/${environment}/${companyId}`;
const tokenOf = async (of: CompanyKey) => (await admin.call('GET', `/api${path(of)}`)).json.token;

interface FoundIssue {
  readonly cause: string;
  readonly companies: number;
  readonly severity: string;
  readonly advice: string;
  readonly sample: string[];
}

async function issues(): Promise<FoundIssue[]> {
  await sweepOf(admin.db)();
  return (await admin.call('GET', '/api/issues?status=ongoing')).json.data;
}

test('a company says what the token endpoint answered, and when it is asked again', async () => {
  const refreshAt = new Date(Date.now() + 300_000);
  const denied = await company({ lastStatus: 400, lastError: 'access_denied', refreshAt });
  expect(await tokenOf(denied)).toMatchObject({
    problem: 'The token endpoint answered 400 access_denied.',
    retry_at: refreshAt.toISOString(),
  });
  expect(await tokenOf(await company({ lastStatus: 403 }))).toMatchObject({ problem: 'The token endpoint answered 403.' });
  const lost = await company({ lastFailure: 'service_timeout' });
  expect(await tokenOf(lost)).toMatchObject({ problem: 'The token endpoint gave no readable answer (service_timeout).' });
  const refused = await company({ transientFailures: 0, lastStatus: 400, lastError: 'invalid_grant' }, 'token_refused');
  const { problem, retry_at } = await tokenOf(refused);
  expect([problem, retry_at]).toEqual(['The token endpoint answered 400 invalid_grant.', undefined]);
  // A process of the release before has stored a pair, and knows nothing of these columns.
  const healthy = await company({ transientFailures: 0, lastStatus: 400, lastError: 'access_denied' });
  expect(await tokenOf(healthy)).not.toHaveProperty('problem');

  const { html } = await (await PageClient.signedIn(admin.url)).open(path(denied));
  expect(html).toContain('The token endpoint answered 400 access_denied.');
});

test('an issue says it of all its companies, once a refresh failed twice or the access token has expired', async () => {
  await company({ lastStatus: 400, lastError: 'access_denied' });
  expect(await issues()).toEqual([]);
  const expired = await company({ lastStatus: 400, lastError: 'access_denied', expiresAt: new Date(0) });
  const twice = await company({ lastStatus: 400, lastError: 'access_denied', putOffs: 2, transientFailures: 2 });
  await company({ lastStatus: 401, lastError: 'invalid_client', putOffs: 0, transientFailures: 2 });
  await company({ lastStatus: 503, lastFailure: 'service_error', putOffs: 0, transientFailures: 9 });
  await company({ lastStatus: 400, lastError: 'invalid_grant', transientFailures: 0 }, 'token_refused');
  const found = await issues();
  expect(found).toMatchObject([
    {
      cause: 'token_put_off',
      companies: 3,
      severity: 'warning',
      token_answers: '400 access_denied (to 2), 401 invalid_client (to 1)',
    },
    { cause: 'reauthorization_required', companies: 1, severity: 'action' },
  ]);
  expect(found[0]!.sample).toEqual(expect.arrayContaining([expired.companyId, twice.companyId]));
  const [putOff, lost] = found.map(({ advice }) => advice);
  expect(putOff).toMatch(/^The token endpoint answered 400 access_denied \(to 2\), 401 invalid_client \(to 1\)\. /);
  expect(lost).toMatch(/^The token endpoint answered 400 invalid_grant \(to 1\)\. /);

  await admin.db.prisma.token.updateMany({ data: { transientFailures: 0 } });
  expect((await issues()).map(({ cause }) => cause)).toEqual(['reauthorization_required']);
});

test('the table takes no text that may hold a secret', async () => {
  const { environment, companyId } = await company({});
  for (const lastError of ['Secret-1', '', 'a'.repeat(41)])
    await expect(
      admin.db.prisma.token.update({ where: { environment_companyId: { environment, companyId } }, data: { lastError } }),
      keyText({ environment, companyId }),
    ).rejects.toThrow('tokens_last_error_is_a_code');
});
