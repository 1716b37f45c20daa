import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditEntryModel } from '../../../src/api/operation/audit-model.js';
import { Authenticator } from '../../../src/api/plumbing/authenticator.js';
import { Secret } from '../../../src/core/secret.js';
import { openDatabase } from '../../../src/db/connection/database.js';
import { waitFor } from '../../support/wait-for.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => void (admin = await startAdmin()));
afterAll(() => admin.stop());

let made = 0;
/** What a creation answers. */
async function create(given: Record<string, unknown> = {}) {
  const { status, json } = await admin.call('POST', '/api/tokens', { name: `token ${++made}`, role: 'viewer', ...given });
  expect(status).toBe(201);
  return json as { id: string; name: string; role: string; token: string; expires_at: string | null };
}

const callWith = (token: string, method = 'GET', path = '/api/companies', body?: unknown) =>
  admin.call(method, path, body, { authorization: `Bearer ${token}` });
const rowOf = (id: string) => admin.db.prisma.namedToken.findUniqueOrThrow({ where: { id } });

/** As another process of the API has it. Its time goes on by hand. */
function anotherProcess() {
  const clock = { now: 0, monotonic: () => clock.now };
  const authenticator = new Authenticator({ db: admin.db, clock, adminToken: new Secret(TOKEN) });
  return { clock, callerOf: (token: string) => authenticator.authenticate(token), forget: () => authenticator.forget() };
}

test('a token is shown once, kept as a hash, and calls under its name', async () => {
  const expires = new Date(Date.now() + 3_600_000).toISOString();
  const { id, token, ...rest } = await create({ name: 'Bjørg Å.', role: 'operator', expires_at: expires });
  expect(rest).toEqual({ name: 'Bjørg Å.', role: 'operator', expires_at: expires });
  expect(token).toMatch(/^muster_[\w-]{43}$/);
  const { rows } = await admin.db.pool.query('SELECT t::text AS row FROM muster.named_tokens t');
  expect(JSON.stringify(rows)).not.toContain(token.slice('muster_'.length));
  expect((await callWith(token)).status).toBe(200);
  const company = await admin.addCompany();
  expect((await callWith(token, 'POST', `/api/companies/test/${company.companyId}/pause`)).status).toBe(200);
  const [entry] = (await admin.call('GET', `/api/audit?actor=${encodeURIComponent('Bjørg Å.')}`)).json.data;
  expect(entry).toMatchObject({ actor: 'Bjørg Å.', role: 'operator', action: 'company.pause' });
  const [listed] = (await admin.call('GET', '/api/tokens')).json.data;
  expect(listed).toEqual({
    id,
    name: 'Bjørg Å.',
    role: 'operator',
    created_at: expect.any(String),
    created_by: 'admin',
    expires_at: expires,
    last_used_at: expect.any(String),
  });
  expect(admin.log()).not.toContain(token);
});

test('the list goes page by page, newest first', async () => {
  const [older, newer] = [await create(), await create()];
  const first = (await admin.call('GET', '/api/tokens?limit=1')).json;
  expect(first.data).toMatchObject([{ id: newer.id }]);
  const second = (await admin.call('GET', `/api/tokens?limit=1&cursor=${first.next_cursor}`)).json;
  expect(second.data).toMatchObject([{ id: older.id }]);
});

test('a deleted token is refused at once, and its name is free again', async () => {
  const { id, name, token } = await create();
  expect((await callWith(token)).status).toBe(200);
  expect((await admin.call('DELETE', `/api/tokens/${id}`)).status).toBe(204);
  const [deleted, wrong] = [await callWith(token), await callWith('wrong')];
  expect([deleted.status, deleted.text]).toEqual([401, wrong.text]);
  const again = await admin.call('DELETE', `/api/tokens/${id}`);
  expect([again.status, again.json.code]).toEqual([404, 'token_not_found']);
  expect((await create({ name })).id).not.toBe(id);
});

test('another process takes a deleted or expired token for a second more, and not longer', async () => {
  const [deleted, expired] = [await create(), await create()];
  const { clock, callerOf } = anotherProcess();
  expect(await callerOf(deleted.token)).toEqual({ name: deleted.name, role: 'viewer', tokenId: deleted.id });
  expect(await callerOf(expired.token)).toMatchObject({ name: expired.name });
  await admin.call('DELETE', `/api/tokens/${deleted.id}`);
  await admin.db.prisma.namedToken.update({ where: { id: expired.id }, data: { expiresAt: new Date(Date.now() - 1) } });
  clock.now = 1_000;
  expect(await callerOf(deleted.token)).toBeUndefined();
  expect(await callerOf(expired.token)).toBeUndefined();
  expect(await callerOf(TOKEN)).toEqual({ name: 'admin', role: 'admin' });
});

test('a deletion that comes while the token is looked up is not overtaken by the answer', async () => {
  const { token, id } = await create();
  const { callerOf, forget } = anotherProcess();
  const client = await admin.db.pool.connect();
  await client.query('BEGIN');
  await client.query('UPDATE muster.named_tokens SET revoked_at = now() WHERE id = $1', [id]);
  // It has been found living, and waits to write down its use.
  const asked = callerOf(token);
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  await waitFor(async () => (await admin.db.pool.query(waiting)).rowCount! > 0, { what: 'the use to be written down' });
  forget();
  await client.query('COMMIT');
  client.release();
  expect(await asked).toMatchObject({ tokenId: id });
  expect(await callerOf(token)).toBeUndefined();
});

test('the last use is written down once a minute', async () => {
  const { id, token } = await create();
  const { clock, callerOf } = anotherProcess();
  expect((await rowOf(id)).lastUsedAt).toBeNull();
  const use = async () => {
    clock.now += 1_000;
    await callerOf(token);
    return (await rowOf(id)).lastUsedAt!.getTime();
  };
  const first = await use();
  expect(await use()).toBe(first);
  await admin.db.pool.query(`UPDATE muster.named_tokens SET last_used_at = now() - interval '61 seconds' WHERE id = $1`, [id]);
  expect(await use()).toBeGreaterThan(first);
});

test('the admin token costs no query, and needs no database', async () => {
  const db = openDatabase({ url: 'postgresql://nobody@127.0.0.1:9/none' });
  const authenticator = new Authenticator({ db, clock: { monotonic: () => 0 }, adminToken: new Secret(TOKEN) });
  for (let i = 0; i < 1_000; i++) expect(await authenticator.authenticate(TOKEN)).toMatchObject({ role: 'admin' });
  expect(await authenticator.authenticate('neither this nor that')).toBeUndefined();
  await expect(authenticator.authenticate(`muster_${'a'.repeat(43)}`)).rejects.toMatchObject({ code: 'database_unavailable' });
  await db.close();
});

test('a flood of wrong tokens holds one connection, and a right one costs a query a second', async () => {
  const { token } = await create();
  const { clock, callerOf } = anotherProcess();
  let queries = 0;
  const count = () => void queries++;
  admin.db.pool.on('acquire', count);
  const wrong = Array.from({ length: 1_000 }, () => callerOf(`muster_${randomUUID()}${randomUUID()}`.slice(0, 50)));
  const right = Array.from({ length: 1_000 }, () => callerOf(token));
  expect(new Set(await Promise.all(wrong))).toEqual(new Set([undefined]));
  expect((await Promise.all(right)).every((caller) => caller?.role === 'viewer')).toBe(true);
  // One for all of them, and one to write down the use.
  expect(queries).toBeLessThanOrEqual(3);
  const before = queries;
  for (let i = 0; i < 100; i++) await callerOf(token);
  expect(queries).toBe(before);
  clock.now = 1_000;
  await callerOf(token);
  expect(queries).toBe(before + 1);
  admin.db.pool.off('acquire', count);
});

test('while the use cannot be written down, a right token is right', async () => {
  const { token, name } = await create();
  await admin.db.pool.query('ALTER TABLE muster.named_tokens ADD CONSTRAINT never CHECK (last_used_at IS NULL) NOT VALID');
  const { callerOf } = anotherProcess();
  expect(await callerOf(token)).toMatchObject({ name });
  await admin.db.pool.query('ALTER TABLE muster.named_tokens DROP CONSTRAINT never');
});

test('a name belongs to one living token, whatever the case of its letters', async () => {
  const { id, name } = await create({ name: 'Night Shift' });
  const taken = await admin.call('POST', '/api/tokens', { name: 'night shift', role: 'admin' });
  expect([taken.status, taken.json.code]).toEqual([409, 'token_name_taken']);
  await admin.db.prisma.namedToken.update({ where: { id }, data: { expiresAt: new Date(Date.now() - 1_000) } });
  expect(JSON.stringify((await admin.call('GET', '/api/tokens')).json)).toContain(id);
  const successor = await create({ name });
  expect(JSON.stringify((await admin.call('GET', '/api/tokens')).json)).not.toContain(id);
  const many = await Promise.all(
    Array.from({ length: 8 }, () => admin.call('POST', '/api/tokens', { name: 'at once', role: 'viewer' })),
  );
  expect(many.map(({ status }) => status).toSorted()).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
  expect(successor.name).toBe(name);
});

test('the making and the deletion of a token are in the audit, refused ones too', async () => {
  const by = await create({ name: 'chief', role: 'admin' });
  const { json } = await callWith(by.token, 'POST', '/api/tokens', { name: 'guest', role: 'viewer' });
  await callWith(by.token, 'POST', '/api/tokens', { name: 'guest', role: 'admin' });
  expect((await callWith(by.token, 'DELETE', `/api/tokens/${json.id}`)).status).toBe(204);
  const { data } = (await admin.call('GET', '/api/audit?actor=chief')).json;
  expect(data.map(({ action, role, details }: AuditEntryModel) => [action, role, details])).toEqual([
    ['token.delete', 'admin', { token_id: json.id, name: 'guest', outcome: 'done' }],
    ['token.create', 'admin', { name: 'guest', role: 'admin', outcome: 'token_name_taken' }],
    ['token.create', 'admin', { token_id: json.id, name: 'guest', role: 'viewer', outcome: 'done' }],
  ]);
  expect(JSON.stringify(data)).not.toContain(json.token);
});

test.each<[Record<string, unknown>, RegExp]>([
  [{ name: '' }, /name: must not be empty/],
  [{ name: '7up' }, /name: must begin with a letter/],
  [{ name: 'anna ' }, /name: must not end with a space/],
  [{ name: 'a\u0000b' }, /name: must begin with a letter/],
  [{ name: 'a'.repeat(101) }, /name: must not have more than 100/],
  [{ name: 'Admin' }, /name: is kept for another actor/],
  [{ name: 'connect link' }, /name: is kept for another actor/],
  [{ name: 'Schedule' }, /name: is kept for another actor/],
  [{ name: 'worker' }, /name: is kept for another actor/],
  [{ name: 'аdmin' }, /Latin letters/], // Cyrillic
  [{ name: 'ａｄｍｉｎ' }, /Latin letters/], // full width
  [{ name: 'admın' }, /Latin letters/], // without a dot
  [{ name: 'Αnna' }, /Latin letters/], // Greek
  [{ name: 'an\u200dna' }, /Latin letters/],
  [{ name: 'connect  link' }, /nor have two in a row/],
  [{ role: 'owner' }, /role: must be viewer, operator or admin/],
  [{ expires_at: 'tomorrow' }, /expires_at: must be a time with its zone/],
  [{ expires_at: '2030-01-01T00:00:00' }, /expires_at: must be a time with its zone/],
  [{ expires_at: '2020-01-01T00:00:00Z' }, /expires_at: lies in the past/],
  [{ expires: '90d' }, /members that this call does not know: expires/],
])('refuses %j', async (given, message) => {
  const { status, json } = await admin.call('POST', '/api/tokens', { name: 'anna', role: 'viewer', ...given });
  expect([status, json.code, json.detail]).toEqual([400, 'invalid_request', expect.stringMatching(message)]);
});

test('a name may have the letters of European languages, composed or not', async () => {
  for (const name of ['Åse Ødegård', 'Łukasz-2', 'ops@example.com']) expect((await create({ name })).name).toBe(name);
  expect((await create({ name: 'Zoe\u0308' })).name).toBe('Zoë');
});

test('a scraper may bear its own token or any that the API takes', async () => {
  const closed = await startAdmin(undefined, { metricsToken: new Secret('a-scraper-token-of-tests') });
  const { token } = (await closed.call('POST', '/api/tokens', { name: 'prometheus', role: 'viewer' })).json;
  const scrape = async (bearer: string) =>
    (await fetch(`${closed.url}/metrics`, { headers: { authorization: `Bearer ${bearer}` } })).status;
  expect(await scrape('a-scraper-token-of-tests')).toBe(200);
  expect(await scrape(token)).toBe(200);
  expect(await scrape(TOKEN)).toBe(200);
  expect(await scrape('wrong')).toBe(401);
  const called = await closed.call('GET', '/api/companies', undefined, { authorization: 'Bearer a-scraper-token-of-tests' });
  expect(called.status).toBe(401);
  await closed.stop();
});
