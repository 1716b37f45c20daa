import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../../src/core/company.js';
import { Secret } from '../../../src/core/secret.js';
import { Cipher, Keyring } from '../../../src/oauth/cipher.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';
import { runMuster } from '../run-muster.js';

let database: TestDatabase;
const key = (id: string) => ({ id, key: randomBytes(32).toString('base64') });
const [old, fresh] = [key('old'), key('new')];

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

async function onboard({ id, key: text }: ReturnType<typeof key>): Promise<CompanyKey> {
  const company: CompanyKey = { environment: 'test', companyId: randomUUID() };
  const cipher = new Cipher(new Keyring([{ id, key: new Secret(text) }]));
  const { prisma } = database.db;
  await prisma.connection.create({ data: company });
  await prisma.token.create({
    data: { ...company, refreshToken: cipher.seal(new Secret('refresh-token-1'), company, 'refresh_token') },
  });
  return company;
}

const rotate = (keys: ReturnType<typeof key>[], ...args: string[]) =>
  runMuster(['rotate-keys', ...args], {
    DATABASE_URL: database.url,
    MUSTER_ENCRYPTION_KEYS: keys.map((one) => `${one.id}:${one.key}`).join(','),
  });

test('encrypts again, says so, and names the tokens whose key is missing', async () => {
  await onboard(old);
  expect(await rotate([fresh, old])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Tokens encrypted again: 1\. Every stored token needs only the first key/) as string,
  });
  const lost = await onboard(key('gone'));
  await onboard(old);
  const { code, stdout, stderr } = await rotate([fresh, old]);
  expect(code).toBe(1);
  expect(stdout).toContain('Tokens encrypted again: 1.\nNot readable: 1\n');
  expect(stdout).toMatch(new RegExp(`test +${lost.companyId} +tokens\\.refresh_token +gone +the key is missing`));
  expect(stderr).toContain('put the missing keys back');

  const json = await rotate([fresh, old], '--json');
  expect(json.code).toBe(1);
  expect(
    json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual([
    { rotated: 0, behind: 0, unreadable: 1 },
    {
      environment: 'test',
      company_id: lost.companyId,
      table: 'tokens',
      field: 'refresh_token',
      key: 'gone',
      reason: 'missing_key',
    },
  ]);
});

test('says in its help what to do in which order', async () => {
  const { code, stdout } = await runMuster(['rotate-keys', '--help'], {});
  expect(code).toBe(0);
  expect(stdout.indexOf('after the key in use')).toBeLessThan(stdout.indexOf('Put it first'));
});
