import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { eraseRecords, newPlaceholder } from '../../src/erasure/record-erasure.js';
import { approveHold, rejectHold } from '../../src/mirror/holds.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { newGrant, onboard, openWalk, records, verifiedWalk, write } from './mirror-fixture.js';

let database: TestDatabase;
let company: CompanyKey;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

/** 200 rows that the first grant has received. */
beforeEach(async () => {
  company = await onboard(database.db);
  await verifiedWalk(database.db, company, ALL);
});

const ALL = records(200);
/** What a person with fewer rights is shown: 19 rows are missing. */
const FEWER = ALL.slice(19);

const walk = (texts: readonly string[]) => verifiedWalk(database.db, company, texts);

async function livingCount(): Promise<number> {
  return database.db.prisma.employee.count({ where: { ...company, deletedAt: null } });
}

async function holds() {
  const rows = await database.db.prisma.hold.findMany({ where: company, orderBy: { seq: 'asc' } });
  return rows.map(({ cause, status, count, grantNumber }) => [cause, status, count, grantNumber]);
}

async function openHold() {
  return database.db.prisma.hold.findFirstOrThrow({ where: { ...company, status: 'open' } });
}

const heldIds = async () =>
  (await database.db.prisma.heldRow.findMany({ where: company, orderBy: { id: 'asc' } })).map(({ id }) => id);

test('rows that another grant has never received are not deleted, however many walks follow, and wait in one hold', async () => {
  await newGrant(database.db, company);
  expect(await walk(FEWER)).toMatchObject({ deleted: 0, held: 0, heldForGrant: 19, opensGrantHold: true });
  const { id, openedAt, authorizedAt } = await openHold();
  expect(authorizedAt).not.toBeNull();
  for (let night = 0; night < 3; night += 1) {
    const { walkId, ...found } = await walk(FEWER);
    expect(found).toMatchObject({ deleted: 0, held: 0, heldForGrant: 19, opensGrantHold: false });
    expect(await openHold()).toMatchObject({ id, openedAt, walkId, cause: 'grant', count: 19, living: 200 });
  }
  expect(await livingCount()).toBe(200);
  expect(await holds()).toEqual([['grant', 'open', 19, 2]]);
});

test('the same grant deletes as ever', async () => {
  expect(await walk(FEWER)).toMatchObject({ deleted: 19, heldForGrant: 0, opensGrantHold: false });
  expect(await heldIds()).toEqual([]);
});

test('a row that the grant has received once is deleted by the ordinary rules, the guard included', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  expect(await walk(FEWER.slice(3))).toMatchObject({ deleted: 3, held: 0, heldForGrant: 19 });
  expect(await livingCount()).toBe(197);
  // 40 of the 178 rows that the grant has received are more than a fifth of them, and would be less than that of all rows with 219 of them.
  expect(await walk(FEWER.slice(43))).toMatchObject({ deleted: 0, held: 40, heldForGrant: 19 });
  expect(await holds()).toEqual([
    ['grant', 'open', 19, 2],
    ['share', 'open', 40, null],
  ]);
  // All that it shows is gone: held whatever the share.
  expect(await verifiedWalk(database.db, company, [], { share: 1, rows: 10 })).toMatchObject({ deleted: 0, held: 178 });
  expect(await livingCount()).toBe(197);
});

test('the hold counts what is missing now, and ends when nothing is', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  const { id } = await openHold();
  await walk(ALL.slice(10));
  expect(await openHold()).toMatchObject({ id, count: 10 });
  // A row that was seen is an ordinary one from then on.
  expect(await walk(FEWER)).toMatchObject({ deleted: 9, heldForGrant: 10 });
  await walk(ALL);
  expect(await holds()).toEqual([['grant', 'superseded', 10, 2]]);
  expect(await heldIds()).toEqual([]);
  expect(await walk(ALL.slice(5))).toMatchObject({ deleted: 5, heldForGrant: 0 });
});

test('a row that a walk without a proof has brought in stays held', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  await write(database.db, await openWalk(database.db, company), ALL);
  expect(await walk(FEWER)).toMatchObject({ deleted: 0, heldForGrant: 19 });
});

test('approving deletes the held rows, and no other', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  await walk(FEWER.slice(60));
  const share = await database.db.prisma.hold.findFirstOrThrow({ where: { ...company, cause: 'share', status: 'open' } });
  const grant = await database.db.prisma.hold.findFirstOrThrow({ where: { ...company, cause: 'grant', status: 'open' } });
  await approveHold(database.db, grant.id);
  expect(await livingCount()).toBe(181);
  expect(await heldIds()).toEqual([]);
  await approveHold(database.db, share.id);
  expect(await livingCount()).toBe(121);
  const { records: living } = await database.db.prisma.list.findFirstOrThrow({ where: company });
  expect(living).toBe(121);
  expect(await walk(FEWER.slice(60))).toMatchObject({ deleted: 0, held: 0, heldForGrant: 0 });
});

test('approving a hold of cause share spares what is held for the grant', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  await walk(FEWER.slice(60));
  const share = await database.db.prisma.hold.findFirstOrThrow({ where: { ...company, cause: 'share', status: 'open' } });
  await approveHold(database.db, share.id);
  expect(await livingCount()).toBe(140);
  expect(await heldIds()).toHaveLength(19);
});

test('is not approved once a newer walk has begun, or somebody has authorized again', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  await newGrant(database.db, company);
  await expect(approveHold(database.db, (await openHold()).id)).rejects.toMatchObject({ code: 'hold_not_open' });
  await walk(FEWER);
  await openWalk(database.db, company);
  await expect(approveHold(database.db, (await openHold()).id)).rejects.toMatchObject({ code: 'hold_not_open' });
  expect(await livingCount()).toBe(200);
});

test('after a rejection nobody is asked again until the grant changes', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  await rejectHold(database.db, (await openHold()).id);
  for (let night = 0; night < 3; night += 1)
    expect(await walk(FEWER)).toMatchObject({ deleted: 0, heldForGrant: 19, opensGrantHold: false });
  expect(await holds()).toEqual([['grant', 'rejected', 19, 2]]);
  await newGrant(database.db, company);
  expect(await walk(FEWER.slice(1))).toMatchObject({ deleted: 0, heldForGrant: 20, opensGrantHold: true });
  expect(await holds()).toEqual([
    ['grant', 'rejected', 19, 2],
    ['grant', 'open', 20, 3],
  ]);
  expect(await livingCount()).toBe(200);
});

test('a rejected row that is seen again is an ordinary one', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  await rejectHold(database.db, (await openHold()).id);
  await walk(ALL.slice(9));
  expect(await walk(FEWER)).toMatchObject({ deleted: 10, heldForGrant: 9 });
});

test('an open hold goes on under the next grant, under the same id', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  const { id } = await openHold();
  await newGrant(database.db, company);
  expect(await walk(FEWER.slice(2))).toMatchObject({ deleted: 0, heldForGrant: 21, opensGrantHold: false });
  expect(await openHold()).toMatchObject({ id, count: 21, grantNumber: 3 });
});

test('a hold of cause share gives way to one of cause grant', async () => {
  await walk(ALL.slice(100));
  await newGrant(database.db, company);
  expect(await walk(ALL.slice(100))).toMatchObject({
    deleted: 0,
    held: 0,
    heldForGrant: 100,
    wasHeld: true,
    opensGrantHold: true,
  });
  expect(await holds()).toEqual([
    ['share', 'superseded', 100, null],
    ['grant', 'open', 100, 2],
  ]);
});

test('a record that is forgotten, a list that is rekeyed and a company that is removed leave no held row', async () => {
  await newGrant(database.db, company);
  await walk(FEWER);
  const list = { ...company, resource: 'employees' };
  await inTransaction(database.db, (tx) =>
    eraseRecords(tx, list, { ids: ['r1'], members: ['id'], placeholderOf: newPlaceholder }),
  );
  await inTransaction(database.db, (tx) => eraseRecords(tx, list, { ids: [], prefix: 'r2/', placeholderOf: newPlaceholder }));
  expect(await heldIds()).toHaveLength(18);
  expect(await heldIds()).not.toContain('r1');
  await rekeyList(database.db, list);
  expect(await heldIds()).toEqual([]);

  company = await onboard(database.db);
  await walk(ALL);
  await newGrant(database.db, company);
  await walk(FEWER);
  expect(await heldIds()).toHaveLength(19);
  await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'test', role: 'admin' }));
  expect(await heldIds()).toEqual([]);
});
