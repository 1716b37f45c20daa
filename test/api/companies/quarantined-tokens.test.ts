import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import {
  insertQuarantinedToken,
  type NewQuarantinedToken,
  removeOldQuarantinedTokens,
  UNNAMED,
} from '../../../src/db/tables/quarantined-tokens.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => void (admin = await startAdmin()));
beforeEach(() => admin.db.prisma.quarantinedToken.deleteMany());
afterAll(() => admin.stop());

const newCompany = (): CompanyKey => ({ environment: 'test', companyId: randomUUID() });
const keep = (token: Partial<NewQuarantinedToken> = {}) =>
  insertQuarantinedToken(admin.db.prisma, { company: newCompany(), sealed: 'v1.k1.canary', reason: 'another_company', ...token });
const list = async (query = '') => (await admin.call('GET', `/api/quarantined-tokens${query}`)).json;
const count = () => admin.db.prisma.quarantinedToken.count();

test('they are listed without their tokens, newest first, and deleted on record', async () => {
  const [company, linkId] = [newCompany(), randomUUID()];
  await keep({ company, linkId, successorOf: 'digest-canary' });
  await keep({ company: { environment: 'production', companyId: UNNAMED }, reason: 'unnamed_company' });
  const answer = await admin.call('GET', '/api/quarantined-tokens');
  expect(answer.text).not.toContain('canary');
  expect(answer.json).toEqual({
    data: [
      {
        id: expect.stringMatching(/^\d+$/),
        environment: 'production',
        company_id: null,
        reason: 'unnamed_company',
        link_id: null,
        received_at: expect.any(String),
      },
      {
        id: expect.any(String),
        environment: 'test',
        company_id: company.companyId,
        reason: 'another_company',
        link_id: linkId,
        received_at: expect.any(String),
      },
    ],
    next_cursor: null,
  });
  const { data, next_cursor } = await list('?limit=1');
  expect((await list(`?limit=1&cursor=${next_cursor}`)).data).toEqual([answer.json.data[1]]);
  expect((await list(`?company_id=${company.companyId}&environment=test`)).data).toEqual([answer.json.data[1]]);

  const path = `/api/quarantined-tokens/${data[0].id}`;
  expect((await admin.fetch(path, { method: 'DELETE' })).status).toBe(401);
  expect((await admin.call('DELETE', path)).status).toBe(204);
  expect((await admin.call('DELETE', path)).json).toMatchObject({ code: 'quarantined_token_not_found' });
  for (const wrong of ['x', '-1', '1e3', '9'.repeat(19)])
    expect((await admin.call('DELETE', `/api/quarantined-tokens/${wrong}`)).status).toBe(400);
  expect((await list()).data).toEqual([answer.json.data[1]]);
  const entries = await admin.db.prisma.auditEntry.findMany({ where: { action: 'quarantined_token.delete' } });
  expect(entries.map(({ details }) => details)).toMatchObject([{ outcome: 'done' }, { outcome: 'quarantined_token_not_found' }]);
});

test('a link keeps three, a company five, and older ones go', async () => {
  const linkId = randomUUID();
  for (let n = 0; n < 61; n++) await keep({ linkId });
  expect(await count()).toBe(3);
  const company = newCompany();
  for (let n = 0; n < 9; n++) await keep({ company, sealed: `v1.k1.${n}` });
  const kept = await admin.db.prisma.quarantinedToken.findMany({ where: company, orderBy: { id: 'asc' } });
  expect(kept.map(({ refreshToken }) => refreshToken)).toEqual([4, 5, 6, 7, 8].map((n) => `v1.k1.${n}`));
});

test('a thousand in all; those of links go before any that may exist nowhere else', async () => {
  const { companyId } = newCompany();
  await keep({ company: { environment: 'test', companyId }, reason: 'not_stored' });
  await admin.db.pool.query(`
    INSERT INTO muster.quarantined_tokens (environment, company_id, refresh_token, link_id)
    SELECT 'test', gen_random_uuid(), 'sealed', gen_random_uuid() FROM generate_series(1, 1200)`);
  await keep({ linkId: randomUUID() });
  expect(await count()).toBe(1000);
  expect(await admin.db.prisma.quarantinedToken.count({ where: { companyId } })).toBe(1);
});

test('the successor of a token takes the place of the one before', async () => {
  for (const sealed of ['v1.k1.first', 'v1.k1.second']) await keep({ sealed, successorOf: 'digest' });
  expect(await admin.db.prisma.quarantinedToken.findMany()).toMatchObject([{ refreshToken: 'v1.k1.second' }]);
});

test('they expire', async () => {
  await keep();
  await admin.db.pool.query(`UPDATE muster.quarantined_tokens SET received_at = now() - interval '29 days'`);
  await removeOldQuarantinedTokens(admin.db, 30);
  expect(await count()).toBe(1);
  await admin.db.pool.query(`UPDATE muster.quarantined_tokens SET received_at = now() - interval '30 days 1 minute'`);
  await removeOldQuarantinedTokens(admin.db, 30);
  expect(await count()).toBe(0);
});
