import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { alter, authorizationFlow, EXPIRED, newCompany, oauthRoom, onboarded, stateOf, TESTER } from './fixture.js';
import { oauthSuite } from './suite.js';

// A company is removed while the authorization server takes its time: what it answers then must not stand anywhere.

const { database, server } = await oauthSuite();
const room = oauthRoom(database.db, server);
const flow = authorizationFlow(room, systemClock);

const remove = (company: CompanyKey) => room.connections.remove(company, TESTER);
/** The service has granted, and its answer is on its way, when the company is removed. */
const removedMeanwhile = (company: CompanyKey) => server.misdeeds.push({ kind: 'after', work: () => remove(company) });
const newLink = async (companyId?: string) =>
  (await flow.links.create({ environment: 'test', companyId })).url.split('/').at(-1)!;

async function consent(token: string, companyId: string) {
  return flow.authorization.finish({ state: await stateOf(flow, token), code: server.issue(companyId) });
}

async function expectNothingOf({ companyId }: CompanyKey): Promise<void> {
  const tables = ['connections', 'tokens', 'quarantined_tokens', 'connect_links', 'runs'].map((table) => `muster.${table}`);
  for (const table of [...tables, 'mirror.companies']) {
    const { rows } = await database.db.pool.query(`SELECT FROM ${table} WHERE company_id = $1`, [companyId]);
    expect([table, rows.length]).toEqual([table, 0]);
  }
}

test('an exchange for the link of the company', async () => {
  const { company } = await onboarded(room, server);
  const token = await newLink(company.companyId);
  removedMeanwhile(company);
  expect(await consent(token, company.companyId)).toEqual({ failure: 'removed_company', ...company });
  await expectNothingOf(company);
});

test('an exchange for a link that names no company; a fresh start brings the company back', async () => {
  const { company } = await onboarded(room, server);
  const token = await newLink();
  removedMeanwhile(company);
  expect(await consent(token, company.companyId)).toMatchObject({ failure: 'removed_company' });
  await expectNothingOf(company);
  expect(await consent(token, company.companyId)).toEqual({ company, created: true });
});

test('an exchange for the link of another company', async () => {
  const { company } = await onboarded(room, server);
  const token = await newLink(newCompany().companyId);
  removedMeanwhile(company);
  expect(await consent(token, company.companyId)).toMatchObject({ failure: 'wrong_company' });
  await expectNothingOf(company);
});

test('an exchange whose grant cannot be used', async () => {
  const { company } = await onboarded(room, server);
  const token = await newLink(company.companyId);
  server.misdeeds.push({ kind: 'change', change: (grant) => ({ ...grant, access_token: '' }), during: () => remove(company) });
  expect(await consent(token, company.companyId)).toMatchObject({ failure: 'unusable_grant' });
  await expectNothingOf(company);
});

test('a refresh', async () => {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, EXPIRED);
  removedMeanwhile(company);
  await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'company_not_found' });
  await expectNothingOf(company);
});

test('a refresh, and the company comes back before the answer', async () => {
  const { company } = await onboarded(room, server);
  await alter(database.db, company, EXPIRED);
  const again = new Secret(server.issue(company.companyId));
  server.misdeeds.push({
    kind: 'after',
    work: async () => {
      await remove(company);
      await room.onboarding.onboard({ ...company, refreshToken: again });
    },
  });
  await room.manager.sourceFor(company).get();
  expect(await database.db.prisma.quarantinedToken.count({ where: company })).toBe(0);
});

test('an onboarding of a company that had to authorize again', async () => {
  const { company } = await onboarded(room, server);
  await room.connections.requireReauthorization(company, 'token_refused');
  removedMeanwhile(company);
  const refreshToken = new Secret(server.issue(company.companyId));
  await expect(room.onboarding.onboard({ ...company, refreshToken })).rejects.toMatchObject({ code: 'company_not_found' });
  await expectNothingOf(company);
});

test("an onboarding and a refresh that are answered with the removed company's token", async () => {
  const { company: removed } = await onboarded(room, server);
  removedMeanwhile(removed);
  const refreshToken = new Secret(server.issue(removed.companyId));
  await expect(room.onboarding.onboard({ ...newCompany(), refreshToken })).rejects.toMatchObject({
    code: 'token_for_another_company',
  });
  await expectNothingOf(removed);

  const [{ company }, { company: gone }] = [await onboarded(room, server), await onboarded(room, server)];
  await alter(database.db, company, EXPIRED);
  server.misdeeds.push({
    kind: 'change',
    change: (grant) => ({ ...grant, company_id: gone.companyId }),
    during: () => remove(gone),
  });
  await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
  await expectNothingOf(gone);
});

test('a token that is given after the removal is taken', async () => {
  const { company } = await onboarded(room, server);
  await remove(company);
  const refreshToken = new Secret(server.issue(company.companyId));
  expect(await room.onboarding.onboard({ ...company, refreshToken })).toEqual({ created: true });
});
