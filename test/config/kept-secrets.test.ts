import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { adminToken, adminTokenPath, encryptionKeys } from '../../src/config/kept-secrets.js';
import { Secret } from '../../src/core/secret.js';
import { scrubRegistered } from '../../src/observability/secret-registry.js';

let folder: string;
let home: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kept-secrets-'));
  home = path.join(folder, 'not', 'there');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the admin token', () => {
  test('is that of the configuration, and then nothing is kept', async () => {
    const configured = new Secret('an-admin-token-of-tests');
    expect(await adminToken({ home, adminToken: configured })).toBe(configured);
    expect(scrubRegistered(configured.reveal())).toBe('[redacted]');
    expect(statSync(home, { throwIfNoEntry: false })).toBeUndefined();
  });

  test('is made once, for all who ask at the same time and later, and its owner alone may read it', async () => {
    const tokens = await Promise.all(Array.from({ length: 8 }, () => adminToken({ home })));
    tokens.push(await adminToken({ home }));
    const [token = '', ...others] = new Set(tokens.map((one) => one.reveal()));
    expect(others).toEqual([]);
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(scrubRegistered(token)).toBe('[redacted]');
    expect(statSync(adminTokenPath({ home })).mode & 0o777).toBe(0o600);
  });

  test.each(['', 'short', 'fifteen-letters'])('is refused where it is as short as %j', async (token) => {
    await adminToken({ home });
    writeFileSync(adminTokenPath({ home }), `${token}\n`);
    await expect(adminToken({ home })).rejects.toMatchObject({
      code: 'invalid_configuration',
      message: expect.stringMatching(/admin-token has \d+ characters instead of 16 or more/),
    });
  });

  test('is closed to others, and they are told of', async () => {
    const token = await adminToken({ home });
    const file = adminTokenPath({ home });
    chmodSync(file, 0o644);
    const warned: unknown[] = [];
    const logger = { warn: (facts: unknown) => void warned.push(facts) };
    expect((await adminToken({ home }, logger)).reveal()).toBe(token.reveal());
    await adminToken({ home }, logger); // it was closed already
    expect([statSync(file).mode & 0o777, warned]).toEqual([0o600, [{ file }]]);
  });

  test('is another one elsewhere', async () => {
    const [one, other] = [await adminToken({ home }), await adminToken({ home: path.join(folder, 'elsewhere') })];
    expect(one.reveal()).not.toBe(other.reveal());
  });
});

describe('the encryption keys', () => {
  test('are those of the configuration, and then nothing is kept', async () => {
    const configured = [{ id: 'k1', key: new Secret(Buffer.alloc(32, 7).toString('base64')) }];
    expect(await encryptionKeys({ home, encryptionKeys: configured })).toBe(configured);
    expect(statSync(home, { throwIfNoEntry: false })).toBeUndefined();
  });

  test('are one that is kept, of 32 bytes', async () => {
    const [first, second] = [await encryptionKeys({ home }), await encryptionKeys({ home })];
    const [key] = first;
    expect(first).toHaveLength(1);
    expect(key?.id).toBe('home');
    expect(Buffer.from(key?.key.reveal() ?? '', 'base64')).toHaveLength(32);
    expect(scrubRegistered(key?.key.reveal() ?? '')).toBe('[redacted]');
    expect(second.map(({ id, key: kept }) => [id, kept.reveal()])).toEqual([['home', key?.key.reveal()]]);
  });
});
