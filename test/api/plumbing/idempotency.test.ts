import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { MusterError } from '../../../src/core/errors.js';
import { removeOldRecords } from '../../../src/jobs/retention.js';
import { waitFor } from '../../support/wait-for.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => void (admin = await startAdmin()));
afterAll(() => admin.stop());
afterEach(async () => {
  admin.refusal = undefined;
  await admin.db.prisma.idempotencyKey.deleteMany();
});

const post = (path: string, body: unknown, key: string) => admin.call('POST', `/api${path}`, body, { 'idempotency-key': key });
const pathOf = ({ environment, companyId }: CompanyKey) => `/companies/${environment}/${companyId}`;
const codeOf = ({ status, json }: { status: number; json: { code: string } }) => [status, json.code];
const LINK = { environment: 'test' };

describe('the same answer', () => {
  test('comes again, secret and all, and the work is not done again', async () => {
    const first = await post('/connect-links', LINK, 'key-1');
    const again = await post('/connect-links', LINK, 'key-1');
    expect([first.status, again.status]).toEqual([201, 201]);
    expect([again.text, again.headers.get('content-type')]).toEqual([first.text, first.headers.get('content-type')]);
    expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    expect(await admin.db.prisma.connectLink.count()).toBe(1);
    expect((await post('/connect-links', LINK, 'key-2')).json.url).not.toBe(first.json.url);
  });

  test('comes for a refusal, too, whatever has changed meanwhile', async () => {
    const company = await admin.addCompany({}, { paused: true });
    const first = await post(`${pathOf(company)}/sync`, undefined, 'k');
    expect(codeOf(first)).toEqual([409, 'company_paused']);
    await post(`${pathOf(company)}/resume`, undefined, 'other');
    const again = await post(`${pathOf(company)}/sync`, undefined, 'k');
    expect([again.status, again.text, again.headers.get('content-type')]).toEqual([
      409,
      first.text,
      'application/problem+json; charset=utf-8',
    ]);
  });

  test('comes for the same body written otherwise', async () => {
    const id = randomUUID();
    const first = await post('/connect-links', `{"environment":"test","company_id":"${id}"}`, 'k');
    const again = await post('/connect-links', `{ "company_id": "${id}",\n "environment": "test" }`, 'k');
    expect([again.status, again.text]).toEqual([201, first.text]);
  });

  test('comes from another process, and no longer than a day', async () => {
    const first = await post('/connect-links', LINK, 'k');
    await admin.db.pool.query(`UPDATE muster.idempotency_keys SET created_at = now() - interval '23 hours 59 minutes'`);
    expect((await post('/connect-links', LINK, 'k')).text).toBe(first.text);
    await admin.db.pool.query(`UPDATE muster.idempotency_keys SET created_at = now() - interval '24 hours 1 minute'`);
    const next = await post('/connect-links', { environment: 'production' }, 'k');
    expect([next.status, next.headers.get('idempotent-replayed')]).toEqual([201, null]);
    expect((await post('/connect-links', { environment: 'production' }, 'k')).text).toBe(next.text);
  });

  test('comes to whoever hung up before it was there', async () => {
    const companyId = randomUUID();
    const body = JSON.stringify({ environment: 'test', company_id: companyId, refresh_token: 'a-refresh-token' });
    const locked = await admin.db.pool.connect();
    await locked.query('BEGIN; LOCK TABLE muster.audit IN ACCESS EXCLUSIVE MODE');
    const spent = admin.spent.length;
    const url = new URL('/api/companies', admin.url);
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', 'idempotency-key': 'k' };
    const hanging = httpRequest(url, { method: 'POST', headers }).on('error', () => {});
    hanging.end(body);
    await waitFor(() => admin.spent.length > spent);
    // While it is under way nobody else does it.
    const early = await post('/companies', body, 'k');
    expect([...codeOf(early), early.headers.get('retry-after')]).toEqual([409, 'idempotency_key_in_use', '1']);
    hanging.destroy();
    await locked.query('ROLLBACK');
    locked.release();
    const answered = await waitFor(async () => (await admin.db.prisma.idempotencyKey.findFirst())?.answer !== null);
    expect(answered).toBe(true);
    const again = await post('/companies', body, 'k');
    expect([again.status, again.json.company_id, again.headers.get('idempotent-replayed')]).toEqual([201, companyId, 'true']);
    expect(admin.spent.length).toBe(spent + 1);
  });
});

test('of twenty at once one does the work', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => post('/connect-links', LINK, 'k')));
  const made = new Set(answers.filter(({ status }) => status === 201).map(({ json }) => json.url));
  expect(made.size).toBe(1);
  for (const { status, json } of answers) expect(status === 201 || json.code === 'idempotency_key_in_use').toBe(true);
  expect(await admin.db.prisma.idempotencyKey.count()).toBe(1);
});

describe('another request under the key is refused', () => {
  test.each<[string, string, unknown]>([
    ['another body', '/connect-links', { environment: 'production' }],
    ['no body', '/connect-links', undefined],
    ['a body that is not valid', '/connect-links', { environment: 'moon' }],
    ['another address', `/companies/test/${randomUUID()}/connect-link`, LINK],
    ['an address that takes no such body', '/syncs', LINK],
  ])('%s', async (_what, path, body) => {
    await post('/connect-links', LINK, 'k');
    const answer = await post(path, body, 'k');
    expect(codeOf(answer)).toEqual([422, 'idempotency_key_reused']);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
  });

  test('the same call for another company', async () => {
    const [one, other] = [await admin.addCompany(), await admin.addCompany()];
    expect((await post(`${pathOf(one)}/pause`, undefined, 'k')).status).toBe(200);
    expect(codeOf(await post(`${pathOf(other)}/pause`, undefined, 'k'))).toEqual([422, 'idempotency_key_reused']);
    expect((await admin.call('GET', `/api${pathOf(other)}`)).json.paused).toBe(false);
  });
});

describe('what ended without an answer may be tried again', () => {
  const body = () => ({ environment: 'test', company_id: randomUUID(), refresh_token: 'a-refresh-token' });

  test('a 5xx, with the same body alone', async () => {
    const onboarding = body();
    admin.refusal = new MusterError('service_unreachable', 'Nobody there.');
    expect(codeOf(await post('/companies', onboarding, 'k'))).toEqual([502, 'service_unreachable']);
    admin.refusal = undefined;
    expect(codeOf(await post('/companies', body(), 'k'))).toEqual([422, 'idempotency_key_reused']);
    expect((await post('/companies', onboarding, 'k')).status).toBe(201);
    expect((await post('/companies', onboarding, 'k')).status).toBe(201);
  });

  test('a request that was not right binds its key to nothing', async () => {
    const refused = await post('/connect-links', { environment: 'moon' }, 'k');
    expect(codeOf(refused)).toEqual([400, 'invalid_request']);
    expect(await admin.db.prisma.idempotencyKey.count()).toBe(0);
    expect((await post('/connect-links', LINK, 'k')).status).toBe(201);
  });

  test('a process that died, once its lease has lapsed; if it was only frozen, it overwrites nothing', async () => {
    const onboarding = body();
    const spent = admin.spent.length;
    const locked = await admin.db.pool.connect();
    await locked.query('BEGIN; LOCK TABLE muster.audit IN ACCESS EXCLUSIVE MODE');
    const frozen = post('/companies', onboarding, 'k');
    await waitFor(() => admin.db.prisma.company.findFirst({ where: { companyId: onboarding.company_id } }));
    // As if the process had died: nobody renews.
    await admin.db.pool.query(`UPDATE muster.idempotency_keys SET lease_until = now() - interval '1 second', epoch = epoch + 1`);
    const second = post('/companies', onboarding, 'k');
    await waitFor(() => admin.spent.length > spent + 1);
    await locked.query('ROLLBACK');
    locked.release();
    expect((await frozen).status).toBe(201);
    // The work was done before the crash, and the second attempt says what it found.
    expect(codeOf(await second)).toEqual([409, 'already_onboarded']);
    expect(codeOf(await post('/companies', onboarding, 'k'))).toEqual([409, 'already_onboarded']);
  });

  test('an answer that the database does not take is given all the same, and the log says so', async () => {
    await admin.db.pool.query(`
      CREATE FUNCTION refuse_answer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$;
      CREATE TRIGGER refuse_answer BEFORE UPDATE ON muster.idempotency_keys FOR EACH ROW WHEN (NEW.answer IS NOT NULL)
      EXECUTE FUNCTION refuse_answer()`);
    const first = await post('/connect-links', LINK, 'k');
    await admin.db.pool.query('DROP FUNCTION refuse_answer CASCADE');
    expect(first.status).toBe(201);
    expect(admin.log()).toContain('An answer could not be kept for its Idempotency-Key');
    expect(codeOf(await post('/connect-links', LINK, 'k'))).toEqual([409, 'idempotency_key_in_use']);
    await admin.db.pool.query(`UPDATE muster.idempotency_keys SET lease_until = now() - interval '1 second'`);
    expect((await post('/connect-links', LINK, 'k')).status).toBe(201);
  });

  test('a lease is renewed while the work goes on', async () => {
    const locked = await admin.db.pool.connect();
    await locked.query('BEGIN; LOCK TABLE muster.audit IN ACCESS EXCLUSIVE MODE');
    const slow = post('/connect-links', LINK, 'k');
    const until = async () => (await admin.db.prisma.idempotencyKey.findFirst())?.leaseUntil?.getTime() ?? 0;
    const first = await waitFor(until);
    expect(await waitFor(async () => (await until()) > first)).toBe(true);
    await locked.query('ROLLBACK');
    locked.release();
    expect((await slow).status).toBe(201);
  });
});

describe('keys', () => {
  test.each([
    ['a', 201],
    ['!~"quoted"', 201],
    ['x'.repeat(255), 201],
    ['x'.repeat(256), 400],
    ['', 400],
    ['two words', 400],
    ['é', 400],
    ['a\tb', 400],
  ])('%j', async (key, status) => {
    const answer = await post('/connect-links', LINK, key);
    expect(answer.status).toBe(status);
    if (status === 400)
      expect(answer.json.errors).toEqual([{ path: 'idempotency-key', message: expect.stringContaining('255') }]);
  });

  test('two of them are none', async () => {
    const headers = [
      ['Authorization', `Bearer ${TOKEN}`],
      ['Idempotency-Key', 'a'],
      ['Idempotency-Key', 'b'],
    ].flat();
    const status = await new Promise((resolve, reject) => {
      httpRequest(new URL('/api/syncs', admin.url), { method: 'POST', headers }, (answer) => resolve(answer.resume().statusCode))
        .on('error', reject)
        .end();
    });
    expect(status).toBe(400);
  });

  test('without a right token they tell nothing, and of other methods they are none', async () => {
    await post('/connect-links', LINK, 'k');
    const answer = await fetch(`${admin.url}/api/connect-links`, { method: 'POST', headers: { 'idempotency-key': 'k' } });
    expect(answer.status).toBe(401);
    for (const method of ['GET', 'DELETE'])
      expect(
        (await admin.call(method, `/api${pathOf(await admin.addCompany())}`, undefined, { 'idempotency-key': 'k' })).status,
      ).toBeLessThan(300);
    expect(await admin.db.prisma.idempotencyKey.count()).toBe(1);
  });

  test('neither they nor what they are kept for can be read in the table', async () => {
    await post(
      '/companies',
      { environment: 'test', company_id: randomUUID(), refresh_token: 'canary-of-a-token' },
      'canary-of-a-key',
    );
    const { json } = await post('/connect-links', LINK, 'another-canary');
    const rows = JSON.stringify(await admin.db.prisma.idempotencyKey.findMany());
    expect(rows).toContain('v1.k1.');
    for (const secret of ['canary', json.url.slice(-20)]) expect(rows).not.toContain(secret);
    expect(admin.log()).not.toContain('canary-of-a-key');
  });

  test('an answer that was moved to another key is given to nobody', async () => {
    await post('/connect-links', LINK, 'one');
    await post('/connect-links', LINK, 'two');
    await admin.db.pool.query(
      `UPDATE muster.idempotency_keys k SET answer = o.answer FROM muster.idempotency_keys o WHERE o.key_hash <> k.key_hash`,
    );
    const answer = await post('/connect-links', LINK, 'one');
    expect(codeOf(answer)).toEqual([500, 'answer_unreadable']);
    expect(answer.text).not.toContain('/connect/');
  });

  test('they go after a day, but for one that is under way', async () => {
    await post('/connect-links', LINK, 'young');
    await admin.db.pool.query(`
      INSERT INTO muster.idempotency_keys (owner, key_hash, request_hash, lease_until, created_at) VALUES
        ('admin', 'old', '', NULL, now() - interval '25 hours'), ('admin', 'lapsed', '', now() - interval '1 hour', now() - interval '25 hours'),
        ('admin', 'busy', '', now() + interval '10 seconds', now() - interval '25 hours')`);
    await removeOldRecords(admin.db, { runDays: 90, auditDays: 400 });
    const left = (await admin.db.prisma.idempotencyKey.findMany()).map(({ keyHash }) => keyHash);
    expect([left.length, left.includes('busy')]).toEqual([2, true]);
  });

  test('every POST of the document takes one, and nothing else does', async () => {
    const { paths } = (await admin.call('GET', '/api/openapi.json')).json;
    for (const [path, methods] of Object.entries<
      Record<string, { parameters?: { name: string; in: string; required?: boolean }[] }>
    >(paths))
      for (const [method, { parameters = [] }] of Object.entries(methods)) {
        const headers = parameters.filter((parameter) => parameter.in === 'header');
        const expected = method === 'post' ? [{ name: 'Idempotency-Key', required: false }] : [];
        expect([path, method, headers]).toMatchObject([path, method, expected]);
      }
  });
});
