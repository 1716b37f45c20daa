import { randomBytes, randomUUID } from 'node:crypto';
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { link, open, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { pino } from 'pino';
import { beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { databaseTime } from '../../src/db/tables/audit.js';
import { AccessTokenManager } from '../../src/oauth/access-token-manager.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { Connections } from '../../src/oauth/connections.js';
import { Onboarding } from '../../src/oauth/onboarding.js';
import { restoreTokens } from '../../src/oauth/restored-tokens.js';
import { readJournal, readJournalFile, TokenJournal } from '../../src/oauth/token-journal.js';
import { Vault } from '../../src/oauth/vault.js';
import { alter, authorizeElsewhere, EXPIRED, newCompany, oauthRoom, storedRefreshToken, TESTER } from './fixture.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
let folder: string;
let path: string;
const logger = pino({ enabled: false });

beforeEach(() => {
  folder = mkdtempSync(`${tmpdir()}/muster-journal-`);
  path = `${folder}/tokens.journal`;
  return () => rmSync(folder, { recursive: true });
});

/** A process that writes the journal. */
async function withJournal() {
  const room = oauthRoom(database.db, server);
  const journal = new TokenJournal(path, { db: database.db, vault: room.vault, logger });
  await journal.start();
  const connections = new Connections(database.db, room.deps.clock, journal);
  const deps = { ...room.deps, connections, journal };
  return { ...room, connections, journal, manager: new AccessTokenManager(deps), onboarding: new Onboarding(deps) };
}

type Room = Awaited<ReturnType<typeof withJournal>>;

const onboard = async (room: Room): Promise<CompanyKey> => {
  const company = newCompany();
  await room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
  return company;
};
const refresh = async (room: Room, company: CompanyKey) => {
  await alter(database.db, company, EXPIRED);
  return (await room.manager.sourceFor(company).get()).reveal();
};
const entries = () => readJournal(readFileSync(path, 'utf8')).entries;
const restored = (room: Room) => restoreTokens({ ...room, db: database.db }, entries());
/** What a backup does that was taken now. */
const backup = async () => {
  const { rows } = await database.db.pool.query('SELECT * FROM muster.tokens');
  return async () => {
    for (const row of rows)
      await database.db.pool.query(
        'UPDATE muster.tokens SET refresh_token = $3, access_token = $4, refreshed_at = $5, refresh_at = now(), expires_at = now() WHERE environment = $1 AND company_id = $2',
        [row.environment, row.company_id, row.refresh_token, row.access_token, row.refreshed_at],
      );
  };
};

test('every refresh token that is received is in the file, encrypted, and readable by its owner alone', async () => {
  const room = await withJournal();
  const company = await onboard(room);
  const tokens = [await storedRefreshToken(room, company)];
  for (let i = 0; i < 3; i++) {
    await refresh(room, company);
    tokens.push(await storedRefreshToken(room, company));
  }
  const sealed = entries().map(({ refreshToken }) => room.vault.openRefresh({ company, refreshToken: refreshToken! }).reveal());
  expect(sealed).toEqual(tokens);
  expect(readFileSync(path, 'utf8')).not.toMatch(/-of-/);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('the token is on the disk before it is stored', async () => {
  const room = await withJournal();
  const company = await onboard(room);
  const before = entries().length;
  const { db } = database;
  await db.pool.query(`CREATE FUNCTION refuse_tokens() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE OF access_token ON muster.tokens FOR EACH ROW EXECUTE FUNCTION refuse_tokens()`);
  try {
    await expect(refresh(room, company)).rejects.toMatchObject({ code: 'token_not_stored' });
  } finally {
    await db.pool.query('DROP TRIGGER refuse ON muster.tokens; DROP FUNCTION refuse_tokens()');
  }
  expect(entries().length).toBe(before + 1);
});

describe('after a restore', () => {
  test('each company has its newest token, and goes on', async () => {
    const room = await withJournal();
    const [a, b, quiet] = [await onboard(room), await onboard(room), await onboard(room)];
    const restore = await backup();
    for (let i = 0; i < 5; i++) for (const company of [a, b]) await refresh(room, company);
    const after = await onboard(room);
    await database.db.pool.query('DELETE FROM muster.connections WHERE company_id = $1', [after.companyId]);
    await restore();
    await expect(room.manager.sourceFor(b).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    expect(await restored(room)).toEqual({ restored: 3, current: 1, removed: 0, unreadable: 0, toRemove: [] });
    expect(await restored(room)).toEqual({ restored: 0, current: 4, removed: 0, unreadable: 0, toRemove: [] });
    for (const company of [a, b, quiet, after]) {
      expect(await room.manager.sourceFor(company).get()).toBeInstanceOf(Secret);
      expect((await room.connections.find(company))?.status).toBe('active');
    }
  });

  test('a token that the database got since is not replaced, and a company that was removed stays so', async () => {
    const room = await withJournal();
    const [again, gone] = [await onboard(room), await onboard(room)];
    await refresh(room, again);
    await authorizeElsewhere(room, server, again);
    const kept = await storedRefreshToken(room, again);
    await room.connections.remove(gone, TESTER);
    expect(await restored(room)).toEqual({ restored: 0, current: 1, removed: 1, unreadable: 0, toRemove: [] });
    expect(await storedRefreshToken(room, again)).toBe(kept);
    // Another host's file has no line of the removal; a backup of before has no audit of it.
    const other = entries().filter(({ refreshToken }) => refreshToken !== null);
    expect(await restoreTokens({ ...room, db: database.db }, other)).toMatchObject({ restored: 0, removed: 1 });
    expect(await room.connections.find(gone)).toBeUndefined();
  });

  test('journals may come one after the other, and a restored token is as old as its entry', async () => {
    const room = await withJournal();
    const company = await onboard(room);
    const restore = await backup();
    for (let i = 0; i < 3; i++) await refresh(room, company);
    const all = entries();
    await restore();
    const deps = { ...room, db: database.db };
    expect(await restoreTokens(deps, all.slice(0, 2))).toMatchObject({ restored: 1 });
    expect(await restoreTokens(deps, all)).toMatchObject({ restored: 1 });
    expect(await restoreTokens(deps, all)).toMatchObject({ restored: 0, current: 1 });
    expect((await room.manager.sourceFor(company).get()).reveal()).toMatch(/^access-token/);
    const { rows } = await database.db.pool.query('SELECT grants_needed FROM muster.refresh_breakers');
    expect(rows).toEqual([{ grants_needed: 10 }, { grants_needed: 10 }]);
  });

  test('a company that was removed after the backup is asked nothing for, and is named', async () => {
    const room = await withJournal();
    const company = await onboard(room);
    const removed = { ...company, at: await databaseTime(database.db.prisma), refreshToken: null };
    const outcome = await restoreTokens({ ...room, db: database.db }, [...entries(), removed]);
    expect(outcome).toEqual({ restored: 0, current: 0, removed: 1, unreadable: 0, toRemove: [company] });
    await alter(database.db, company, EXPIRED);
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
  });

  test('a token whose key is missing is counted, and the others are restored', async () => {
    const room = await withJournal();
    const [a, b] = [await onboard(room), await onboard(room)];
    const restore = await backup();
    await refresh(room, a);
    await refresh(room, b);
    await restore();
    const foreign = new Vault(new Cipher(new Keyring([{ id: 'lost', key: new Secret(randomBytes(32).toString('base64')) }])));
    const mixed = entries().map((entry) =>
      entry.companyId === a.companyId ? { ...entry, refreshToken: foreign.sealRefresh(a, new Secret('x')) } : entry,
    );
    expect(await restoreTokens({ ...room, db: database.db }, mixed)).toEqual({
      restored: 1,
      current: 0,
      removed: 0,
      unreadable: 1,
      toRemove: [],
    });
  });

  test('nothing is restored into a copy', async () => {
    const room = await withJournal();
    await onboard(room);
    await database.db.pool.query('UPDATE muster.installation SET is_detached = TRUE');
    try {
      await expect(restored(room)).rejects.toMatchObject({ code: 'installation_detached' });
    } finally {
      await database.db.pool.query('UPDATE muster.installation SET is_detached = FALSE');
    }
  });
});

describe('compaction', () => {
  test('leaves the newest entry of each company, made with the first key, and none of a removed one', async () => {
    const room = await withJournal();
    const [a, gone] = [await onboard(room), await onboard(room)];
    for (let i = 0; i < 3; i++) await refresh(room, a);
    const keepsLine = entries().filter(({ companyId }) => companyId === gone.companyId);
    await room.connections.remove(gone, TESTER);
    // As on another host, which has no line of the removal.
    const lines = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => !line.includes('null'));
    writeFileSync(path, lines.join('\n'));
    expect(keepsLine).toHaveLength(1);
    const ofA = entries().filter(({ companyId }) => companyId === a.companyId);
    await room.journal.compact();
    // The newest one, and when the company was authorized, which an older one said.
    const newest = { ...ofA.at(-1), authorizedAt: ofA[0]!.authorizedAt };
    expect(newest.authorizedAt).toBe(ofA[0]!.at);
    expect(entries()).toEqual([newest, { ...keepsLine[0], refreshToken: null, authorizedAt: undefined }]);
    await room.journal.compact();
    expect(entries()).toHaveLength(2);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('makes entries of an older key again', async () => {
    const room = await withJournal();
    const company = newCompany();
    const [old, both] = ['old', 'new'].map((id) => ({ id, key: new Secret(randomBytes(32).toString('base64')) }));
    const before = new TokenJournal(path, { db: database.db, vault: new Vault(new Cipher(new Keyring([old!]))), logger });
    await before.append(company, await databaseTime(database.db.prisma), new Secret('the-token'));
    const vault = new Vault(new Cipher(new Keyring([both!, old!])));
    await new TokenJournal(path, { db: database.db, vault, logger }).compact();
    expect(entries()[0]?.refreshToken).toMatch(/^v1\.new\./);
    expect(vault.openRefresh({ company, refreshToken: entries()[0]!.refreshToken! }).reveal()).toBe('the-token');
    // Without the key it stays as it is.
    await room.journal.compact();
    expect(entries()[0]?.refreshToken).toMatch(/^v1\.new\./);
  });

  test('beside writers of several processes loses no entry', async () => {
    const { vault } = oauthRoom(database.db, server);
    const journals = Array.from({ length: 4 }, () => new TokenJournal(path, { db: database.db, vault, logger }));
    const at = await databaseTime(database.db.prisma);
    const written: string[] = [];
    const writing = { isDone: false };
    const compactions = journals.slice(0, 2).map(async (journal) => {
      let count = 0;
      for (; !writing.isDone; count++) await journal.compact();
      return count;
    });
    await Promise.all(
      journals.map(async (journal) => {
        for (let i = 0; i < 150; i++) {
          const companyId = randomUUID();
          await journal.append({ environment: 'test', companyId }, at, new Secret('t'));
          written.push(companyId);
        }
      }),
    );
    writing.isDone = true;
    expect((await Promise.all(compactions)).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(5);
    expect(new Set(entries().map(({ companyId }) => companyId))).toEqual(new Set(written));
    expect(readJournal(readFileSync(path, 'utf8')).torn).toBe(0);
  });

  test('that ends between the opening of the file and its writing loses no entry', async () => {
    const { vault } = oauthRoom(database.db, server);
    const journal = new TokenJournal(path, { db: database.db, vault, logger });
    const at = await databaseTime(database.db.prisma);
    writeFileSync(path, '');
    const written: string[] = [];
    for (let i = 0; i < 30; i++) {
      const companyId = randomUUID();
      written.push(companyId);
      const appended = journal.append({ environment: 'test', companyId }, at, new Secret('t'));
      // Each turn of the event loop is between two of its calls.
      for (let turn = 0; turn < i; turn++) await new Promise((resolve) => setImmediate(resolve));
      writeFileSync(`${path}.new`, readFileSync(path));
      renameSync(`${path}.new`, path);
      await appended;
    }
    expect(new Set(entries().map(({ companyId }) => companyId))).toEqual(new Set(written));
  });

  test('that did not end is ended by the next one', async () => {
    const room = await withJournal();
    const company = await onboard(room);
    await link(path, `${path}.old`);
    writeFileSync(`${path}.new`, '');
    await rename(`${path}.new`, path);
    expect(entries()).toEqual([]);
    expect(readJournal(await readJournalFile(path)).entries).toHaveLength(1);
    await room.journal.compact();
    expect(entries().map(({ companyId }) => companyId)).toEqual([company.companyId]);
    expect(readdirSync(folder)).toEqual(['tokens.journal']);
  });

  test('goes on at the end of a symbolic link, and takes rights from a file that others may read', async () => {
    const { vault } = oauthRoom(database.db, server);
    writeFileSync(`${folder}/elsewhere`, '', { mode: 0o644 });
    symlinkSync(`${folder}/elsewhere`, path);
    const journal = new TokenJournal(path, { db: database.db, vault, logger });
    await journal.start();
    await journal.append(newCompany(), await databaseTime(database.db.prisma), new Secret('t'));
    await journal.compact();
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(entries()).toHaveLength(1);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await journal.stop();
  });
});

test('a line that was cut off spoils no other', async () => {
  const room = await withJournal();
  const company = await onboard(room);
  const file = await open(path, 'a');
  await file.appendFile('\n{"environment":"test","company_id":"');
  await file.close();
  await refresh(room, company);
  expect(entries()).toHaveLength(2);
  expect(readJournal(readFileSync(path, 'utf8')).torn).toBe(1);
});

test('a file that cannot be written stops the start by name, and a disk that is full later loses no company', async () => {
  const { vault } = oauthRoom(database.db, server);
  const nowhere = new TokenJournal(`${folder}/none/tokens.journal`, { db: database.db, vault, logger });
  await expect(nowhere.start()).rejects.toMatchObject({
    code: 'invalid_configuration',
    message: expect.stringContaining('TOKEN_JOURNAL'),
  });
  const room = await withJournal();
  const company = await onboard(room);
  rmSync(folder, { recursive: true });
  try {
    expect(await refresh(room, company)).toMatch(/^access-token/);
  } finally {
    folder = mkdtempSync(`${tmpdir()}/muster-journal-`);
  }
});
