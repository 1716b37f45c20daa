import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { rotateKeys, warnOfMissingKeys } from '../../src/oauth/key-rotation.js';
import { createLogger } from '../../src/observability/logger.js';
import { oauthRoom, onboarded, storePair } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();

const key = (id: string) => ({ id, key: new Secret(randomBytes(32).toString('base64')) });
const [old, fresh] = [key('old'), key('new-1')];
const oldKeys = new Keyring([old]);
const bothKeys = new Keyring([fresh, old]);
const newKeys = new Keyring([fresh]);

beforeEach(async () => {
  await database.db.pool.query('DELETE FROM muster.quarantined_tokens');
});

/** A process with these keys; `companies` are onboarded by it. */
async function processWith(keyring: Keyring, count = 0, db = database.db) {
  const room = oauthRoom(db, server, systemClock, keyring);
  const companies = [];
  for (let i = 0; i < count; i++) companies.push((await onboarded(room, server)).company);
  return { room, companies };
}

const keysInUse = async () => {
  const { rows } = await database.db.pool.query<{ key: string }>(
    `SELECT DISTINCT split_part(sealed, '.', 2) AS key FROM (
       SELECT access_token FROM muster.tokens UNION ALL SELECT refresh_token FROM muster.tokens
       UNION ALL SELECT refresh_token FROM muster.quarantined_tokens) AS t (sealed) ORDER BY key`,
  );
  return rows.map((row) => row.key);
};

test('while others refresh: nothing is lost, and everything ends under the new key, quarantine too', async () => {
  const { companies, room } = await processWith(oldKeys, 12);
  for (const company of companies.slice(0, 3))
    await room.vault.quarantine(
      database.db.prisma,
      { company, reason: 'overtaken' },
      new Secret(server.issue(company.companyId)),
    );
  expect(await keysInUse()).toEqual(['old']);

  const others = [1, 2].map(() => openDatabase({ url: database.url, poolSize: 4 }));
  const workers = await Promise.all(others.map((db) => processWith(bothKeys, 0, db)));
  server.received.length = 0;
  const rotating = new AbortController();
  const refreshing = workers.map(async ({ room: { manager } }) => {
    for (let round = 0; !rotating.signal.aborted || round < 5; round++) {
      await database.db.pool.query('UPDATE muster.tokens SET refresh_at = now() WHERE random() < 0.5');
      await Promise.all(companies.map((company) => manager.refresh(company)));
    }
  });
  let rotated = 0;
  for (let i = 0; i < 5; i++) {
    const rotation = await rotateKeys(database.db, new Cipher(bothKeys));
    expect(rotation).toMatchObject({ unreadable: [], behind: 0 });
    rotated += rotation.rotated;
  }
  rotating.abort();
  await Promise.all(refreshing);
  await Promise.all(others.map((db) => db.close()));

  expect(rotated).toBeGreaterThanOrEqual(3);
  expect(server.received.length).toBeGreaterThan(companies.length);
  expect(server.received.length).toBe(new Set(server.received.map((fields) => fields['refresh_token'])).size);
  expect(await keysInUse()).toEqual(['new-1']);
  // Without the old key every company goes on.
  const { manager, connections } = (await processWith(newKeys)).room;
  await database.db.pool.query('UPDATE muster.tokens SET refresh_at = now(), expires_at = now()');
  for (const company of companies) {
    await manager.sourceFor(company).get();
    expect((await connections.find(company))?.status).toBe('active');
  }
});

test('a missing key and a damaged token are named, and the rest is encrypted again', async () => {
  const { companies } = await processWith(oldKeys, 2);
  const lost = await processWith(new Keyring([key('gone')]), 1);
  await database.db.pool.query("UPDATE muster.tokens SET access_token = 'v1.old.AAAA' WHERE company_id = $1", [
    companies[1]?.companyId,
  ]);
  const { rotated, unreadable, behind } = await rotateKeys(database.db, new Cipher(bothKeys));
  expect([rotated, behind]).toEqual([3, 0]);
  const [missing] = lost.companies;
  expect(unreadable.toSorted((a, b) => a.reason.localeCompare(b.reason) || a.field.localeCompare(b.field))).toEqual([
    { ...companies[1], table: 'tokens', field: 'access_token', key: null, reason: 'damaged' },
    { ...missing, table: 'tokens', field: 'access_token', key: 'gone', reason: 'missing_key' },
    { ...missing, table: 'tokens', field: 'refresh_token', key: 'gone', reason: 'missing_key' },
  ]);
});

test('kept answers come under the new key, and an unreadable one does no harm', async () => {
  const keep = async (keyHash: string, answer: string) =>
    database.db.prisma.idempotencyKey.create({ data: { owner: 'admin', keyHash, requestHash: '', answer } });
  const place = { owner: 'admin', keyHash: 'one' };
  await keep('one', new Cipher(oldKeys).sealAnswer('{"url":"secret"}', place));
  await keep('lost', new Cipher(new Keyring([key('gone')])).sealAnswer('{}', { owner: 'admin', keyHash: 'lost' }));
  expect(await rotateKeys(database.db, new Cipher(bothKeys))).toEqual({ rotated: 0, unreadable: [], behind: 0 });
  const { answer } = await database.db.prisma.idempotencyKey.findUniqueOrThrow({ where: { owner_keyHash: place } });
  expect(new Cipher(newKeys).openAnswer(answer!, place)).toBe('{"url":"secret"}');
  // A ciphertext opens in its own row alone.
  expect(() => new Cipher(newKeys).openAnswer(answer!, { owner: 'viewer', keyHash: 'one' })).toThrow('does not open');
});

test('the key of the marks comes under the new key, and without its own nothing is rotated in silence', async () => {
  const marks = new Secret('a key of marks, in base64');
  const keep = (sealed: string) =>
    database.db.prisma.markKey.upsert({ where: { only: true }, create: { sealed }, update: { sealed } });
  await keep(new Cipher(oldKeys).sealMarkKey(marks));
  await rotateKeys(database.db, new Cipher(bothKeys));
  const { sealed } = await database.db.prisma.markKey.findFirstOrThrow();
  expect(new Cipher(newKeys).openMarkKey(sealed).reveal()).toBe(marks.reveal());
  await keep(new Cipher(new Keyring([key('gone')])).sealMarkKey(marks));
  await expect(rotateKeys(database.db, new Cipher(bothKeys))).rejects.toMatchObject({
    code: 'mark_key_unreadable',
    message: expect.stringContaining('"gone"'),
  });
  await database.db.prisma.markKey.deleteMany();
});

test('a process that goes on with the old key is noticed', async () => {
  const { companies, room } = await processWith(oldKeys, 1);
  const [company] = companies;
  if (!company) throw new Error('no company');
  const pair = {
    accessToken: new Secret('access-token'),
    refreshToken: new Secret(server.issue(company.companyId)),
    lifetimeSeconds: 1800,
    refreshAfterSeconds: 1500,
  };
  // Whatever is read, the old process has just written.
  const prisma = new Proxy(database.db.prisma, {
    get: (target, name) =>
      name === '$queryRaw'
        ? async (...args: Parameters<typeof target.$queryRaw>) => {
            await storePair(room, company, pair);
            return target.$queryRaw(...args);
          }
        : (Reflect.get(target, name) as unknown),
  });
  const { behind } = await rotateKeys({ ...database.db, prisma }, new Cipher(bothKeys));
  expect(behind).toBeGreaterThan(0);
});

test('at the start a missing key is named once, with how many tokens need it', async () => {
  await processWith(oldKeys, 2);
  const { companies } = await processWith(new Keyring([key('gone')]), 3);
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  await warnOfMissingKeys(database.db, bothKeys, logger);
  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0] ?? '') as { example: unknown };
  expect(line).toMatchObject({ level: 50, key: 'gone', tokens: 6 });
  expect(companies).toContainEqual(line.example);
  lines.length = 0;
  await warnOfMissingKeys(database.db, new Keyring([fresh]), logger);
  expect(lines.map((text) => (JSON.parse(text) as { key: string }).key)).toEqual(['gone', 'old']);
});
