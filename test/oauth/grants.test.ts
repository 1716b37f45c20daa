import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { type GrantedToken, tokensOfGrant } from '../../src/http/token-source.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { rotateKeys } from '../../src/oauth/key-rotation.js';
import { restoreTokens } from '../../src/oauth/restored-tokens.js';
import { alter, DUE, newCompany, oauthRoom, storedRefreshToken, trustTokens } from './fixture.js';
import { oauthSuite } from './suite.js';

const key = (id: string) => ({ id, key: new Secret(randomBytes(32).toString('base64')) });
const [OLD, NEW] = [key('old'), key('new')];
const ANNA = { sub: 'anna', scope: 'read write', roles: ['admin', 'hr'] };

const { database, server } = await oauthSuite();
const room = oauthRoom(database.db, server, undefined, new Keyring([OLD]));
let company: CompanyKey;
let serial = 0;

beforeEach(async () => {
  company = newCompany();
  await trustTokens(database.db);
});

/** An access token with these claims, which differs from every other one. */
function jwt(claims: object): string {
  serial += 1;
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return [part({ alg: 'RS256' }), part({ ...claims, jti: String(serial), iat: serial }), 'c2lnbmF0dXJl'].join('.');
}

/** The next access token has these claims; without, it cannot be read. */
function answerWith(claims: object | undefined): void {
  if (claims) server.misdeeds.push({ kind: 'change', change: (answer) => ({ ...answer, access_token: jwt(claims) }) });
}

/** A person authorizes, for the first time or again. */
async function authorize(claims?: object, by = room): Promise<void> {
  await database.db.prisma.connection.updateMany({ where: company, data: { reauthorizationReason: 'token_refused' } });
  answerWith(claims);
  await by.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
}

async function refresh(claims?: object, by = room): Promise<GrantedToken> {
  await alter(database.db, company, DUE);
  answerWith(claims);
  return (await by.manager.sourceFor(company).get()) as GrantedToken;
}

async function grant() {
  const { grantNumber, grantClaims, authorizedAt } = await database.db.prisma.connection.findFirstOrThrow({ where: company });
  return { number: grantNumber, claims: grantClaims, authorizedAt };
}
const grantNumber = async () => (await grant()).number;

describe('an authorization', () => {
  test('is the first grant of a connection, and one with equal claims the same', async () => {
    await authorize(ANNA);
    const first = await grant();
    expect(first.number).toBe(1);
    await authorize({ ...ANNA, scope: 'write read', roles: ['hr', 'admin'] });
    expect(await grant()).toEqual(first);
  });

  test.each([
    ['another person', { ...ANNA, sub: 'berit' }],
    ['fewer scopes', { ...ANNA, scope: 'read' }],
    ['fewer roles', { ...ANNA, roles: ['hr'] }],
  ])('by %s is the next one', async (_, claims) => {
    await authorize(ANNA);
    const first = await grant();
    await authorize(claims);
    const second = await grant();
    expect(second.number).toBe(2);
    expect(second.authorizedAt.getTime()).toBeGreaterThan(first.authorizedAt.getTime());
    expect(second.claims).not.toBe(first.claims);
    await authorize(ANNA);
    expect(await grantNumber()).toBe(3);
  });

  test('with an opaque token is always the next one', async () => {
    await authorize();
    await authorize();
    await authorize();
    expect(await grant()).toMatchObject({ number: 3, claims: null });
  });

  test('with an opaque token after one that could be read is the next one, and forgets its claims', async () => {
    await authorize(ANNA);
    await authorize();
    expect(await grant()).toMatchObject({ number: 2, claims: null });
    await authorize(ANNA);
    expect(await grantNumber()).toBe(3);
  });

  test('with rights and no person is always the next one', async () => {
    await authorize({ scope: 'read' });
    await authorize({ scope: 'read' });
    expect(await grantNumber()).toBe(2);
  });

  test('keeps no claim, and of two companies not even an equal hash', async () => {
    await authorize(ANNA);
    const { claims } = await grant();
    expect(claims).toMatch(/^v1\.old\.[\w-]{43}$/);
    company = newCompany();
    await authorize(ANNA);
    expect((await grant()).claims).not.toBe(claims);
    const { rows } = await database.db.pool.query<{ text: string }>('SELECT c::text AS text FROM muster.connections c');
    expect(rows.filter(({ text }) => text.includes('anna'))).toEqual([]);
  });
});

describe('a refresh', () => {
  test('is of the same grant while its claims are, or cannot be read', async () => {
    await authorize(ANNA);
    expect(await refresh({ ...ANNA, scope: 'write read' })).toMatchObject({ grantNumber: 1 });
    expect(await refresh()).toMatchObject({ grantNumber: 1 });
    expect(await refresh(ANNA)).toMatchObject({ grantNumber: 1 });
    expect(await grantNumber()).toBe(1);
  });

  test('with other scopes is the next grant, for its token and all that follow', async () => {
    await authorize(ANNA);
    expect(await refresh({ ...ANNA, scope: 'read' })).toMatchObject({ grantNumber: 2 });
    expect(await room.manager.sourceFor(company).get()).toMatchObject({ grantNumber: 2 });
    expect(await refresh({ ...ANNA, scope: 'read' })).toMatchObject({ grantNumber: 2 });
    expect(await grantNumber()).toBe(2);
  });

  test('writes the claims down where an earlier version knew none', async () => {
    await authorize(ANNA);
    await database.db.prisma.connection.updateMany({ where: company, data: { grantClaims: null } });
    expect(await refresh({ ...ANNA, scope: 'read' })).toMatchObject({ grantNumber: 1 });
    expect(await refresh(ANNA)).toMatchObject({ grantNumber: 2 });
  });

  test('of opaque tokens never is another grant', async () => {
    await authorize();
    await refresh();
    expect(await refresh()).toMatchObject({ grantNumber: 1 });
  });
});

describe('a walk of one grant', () => {
  test('gets no token of the next one', async () => {
    await authorize();
    const tokens = tokensOfGrant(room.manager.sourceFor(company), 1);
    const token = await tokens.get();
    await authorize();
    await expect(tokens.renew(token)).rejects.toMatchObject({ code: 'grant_changed', retryable: true });
  });

  test('gets none of the one before that is still in memory', async () => {
    await authorize();
    // The clock of this room stands still. By the usual one, a test that is held up for half a second reads the token again.
    const { manager } = oauthRoom(database.db, server, { ...systemClock, monotonic: () => 0 }, new Keyring([OLD]));
    const source = manager.sourceFor(company);
    const before = await source.get();
    await authorize();
    expect((await source.get()).reveal()).toBe(before.reveal());
    const token = await tokensOfGrant(source, 2).get();
    expect(token).toMatchObject({ grantNumber: 2 });
    expect(token.reveal()).not.toBe(before.reveal());
  });
});

test('another encryption key leaves the grant as it is', async () => {
  await authorize(ANNA);
  const both = new Keyring([NEW, OLD]);
  await rotateKeys(database.db, new Cipher(both));
  expect((await grant()).claims).toMatch(/^v1\.new\./);
  const later = oauthRoom(database.db, server, undefined, new Keyring([NEW]));
  await authorize(ANNA, later);
  expect(await grantNumber()).toBe(1);
  await refresh({ ...ANNA, scope: 'read' }, later);
  expect(await grantNumber()).toBe(2);
  // Back to the key of the other tests.
  await rotateKeys(database.db, new Cipher(new Keyring([OLD, NEW])));
});

test('a refresh hashes again what another key has hashed, and compares with both', async () => {
  await authorize(ANNA);
  const both = oauthRoom(database.db, server, undefined, new Keyring([NEW, OLD]));
  expect(await refresh(ANNA, both)).toMatchObject({ grantNumber: 1 });
  expect((await grant()).claims).toMatch(/^v1\.new\./);
  expect(await refresh({ ...ANNA, roles: [] }, both)).toMatchObject({ grantNumber: 2 });
  await rotateKeys(database.db, new Cipher(new Keyring([OLD, NEW])));
});

describe('a token of the journal', () => {
  const restore = async (authorizedAt?: Date) => {
    const refreshToken = room.vault.sealRefresh(company, new Secret(await storedRefreshToken(room, company)));
    const at = new Date(Date.now() + 60_000).toISOString();
    return restoreTokens({ ...room, db: database.db }, [
      { ...company, at, refreshToken, ...(authorizedAt && { authorizedAt: authorizedAt.toISOString() }) },
    ]);
  };

  test('is of the grant of the backup where it came of refreshes', async () => {
    await authorize();
    await restore();
    expect(await grantNumber()).toBe(1);
  });

  test('is of the next one if a person has authorized since the backup', async () => {
    await authorize();
    await restore(new Date(Date.now() + 30_000));
    expect(await grantNumber()).toBe(2);
  });
});
