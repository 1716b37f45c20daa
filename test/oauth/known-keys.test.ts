import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { rotateKeys } from '../../src/oauth/key-rotation.js';
import { requireKnownKeys } from '../../src/oauth/known-keys.js';
import { emptyTables } from '../support/empty-tables.js';
import { oauthRoom, onboarded } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
beforeEach(() => emptyTables(database.db, 'muster.connections', 'muster.encryption_keys'));

const key = (id: string) => ({ id, key: new Secret(randomBytes(32).toString('base64')) });
const ringOf = (...keys: ReturnType<typeof key>[]) => new Keyring(keys);
const start = (ring: Keyring) => requireKnownKeys(database.db, ring);
const refused = { code: 'invalid_configuration', message: expect.stringContaining('"k" is another key than the one') };

test('another key under a known id is refused, first in the ring or last, with or without tokens', async () => {
  const right = key('k');
  await Promise.all([start(ringOf(right)), start(ringOf(right))]);
  await start(ringOf(key('new'), right));
  await expect(start(ringOf(key('k')))).rejects.toMatchObject(refused);
  await expect(start(ringOf(key('other'), key('k')))).rejects.toMatchObject(refused);
  await start(ringOf(right));
});

test('it is refused, too, where a version before has stored tokens with the right one', async () => {
  const right = key('k');
  const room = oauthRoom(database.db, server, systemClock, ringOf(right));
  for (let n = 0; n < 3; n += 1) await onboarded(room, server);
  await emptyTables(database.db, 'muster.encryption_keys');
  await expect(start(ringOf(key('k')))).rejects.toMatchObject(refused);
  expect(await database.db.prisma.encryptionKey.count()).toBe(0);
  // One row that is damaged is another trouble.
  await database.db.pool.query(
    `UPDATE muster.tokens SET refresh_token = refresh_token || 'A' WHERE company_id = (SELECT min(company_id::text)::uuid FROM muster.tokens)`,
  );
  await start(ringOf(right));
});

test('of two processes that start with different keys under one id, one is refused', async () => {
  const results = await Promise.allSettled([start(ringOf(key('k'))), start(ringOf(key('k')))]);
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

test('the id of a key that nothing needs any more may be given to another', async () => {
  const [old, fresh] = [key('k'), key('fresh')];
  const room = oauthRoom(database.db, server, systemClock, ringOf(old));
  await onboarded(room, server);
  const both = ringOf(fresh, old);
  await start(both);
  await rotateKeys(database.db, new Cipher(both));
  await expect(start(ringOf(fresh, key('k')))).resolves.toBeUndefined();
});
