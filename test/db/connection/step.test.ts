import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../../src/db/connection/database.js';
import { runStep, wasRolledBack } from '../../../src/db/connection/step.js';
import { Prisma } from '../../../src/generated/prisma/client.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

const VALUES = {
  bigint: 2n ** 62n,
  int: 7,
  float: 1.5,
  bool: false,
  text: 'ö "x" \\',
  time: new Date('2026-02-03T04:05:06.789Z'),
  bytes: Buffer.from([0, 255, 92]),
  texts: ['a', 'b,"c"', null],
  json: { a: [1, null] },
  none: null,
};

test('a step takes and gives values as $queryRaw does', async () => {
  const statement = Prisma.sql`SELECT ${VALUES.bigint}::bigint AS bigint, ${VALUES.int}::int AS int, ${VALUES.float}::float8 AS float,
    ${VALUES.bool}::boolean AS bool, ${VALUES.text}::text AS text, ${VALUES.time}::timestamptz AS time, ${VALUES.bytes}::bytea AS bytes,
    ${VALUES.texts}::text[] AS texts, ${VALUES.json}::jsonb AS json, ${VALUES.none}::bigint AS none`;
  const [row] = await runStep<typeof VALUES>(database.db, statement);
  expect(row).toEqual(VALUES);
  const [other] = await database.db.prisma.$queryRaw<(typeof VALUES)[]>(statement);
  expect({ ...row, bytes: [...row!.bytes] }).toEqual({ ...other, bytes: [...other!.bytes] });
});

test('an error of a step has its SQLSTATE, that of muster.require too', async () => {
  await expect(runStep(database.db, Prisma.sql`SELECT 1 / ${0}::int`)).rejects.toMatchObject({ code: '22012' });
  const refused = runStep(database.db, Prisma.sql`SELECT muster.require(false)`);
  await expect(refused).rejects.toSatisfy(wasRolledBack);
});

test('an error of a step says what the server said', async () => {
  const refused = runStep(database.db, Prisma.sql`INSERT INTO muster.lists (environment) VALUES ('test')`);
  await expect(refused).rejects.toMatchObject({
    code: '23502',
    message: expect.stringContaining('violates not-null constraint'),
  });
});

test.each([
  ['a name with two addresses', 'postgres://muster@localhost:1/muster'],
  ['a socket that is missing', 'postgres://muster@/muster?host=/nowhere'],
])('a step that reaches no server is told from one that failed: %s', async (_, url) => {
  const away = openDatabase({ url });
  await expect(runStep(away, Prisma.sql`SELECT 1`)).rejects.toMatchObject({ code: 'database_unavailable' });
  await away.close();
});

test('the values of a step are garbage after it, be it done or failed', async () => {
  const takeStep = async (sql: (bytes: Buffer) => Prisma.Sql) => {
    const bytes = Buffer.alloc(1_000_000);
    await runStep(database.db, sql(bytes)).catch(() => {});
    return new WeakRef(bytes);
  };
  const pages = [
    await takeStep((bytes) => Prisma.sql`SELECT length(${bytes}::bytea)`),
    await takeStep((bytes) => Prisma.sql`SELECT 1 / (length(${bytes}::bytea) * 0)`),
  ];
  // The connection itself holds on to its last statement.
  await runStep(database.db, Prisma.sql`SELECT 1`);
  setFlagsFromString('--expose-gc');
  await new Promise(setImmediate);
  (runInNewContext('gc') as () => void)();
  expect(pages.map((page) => page.deref()?.length)).toEqual([undefined, undefined]);
});
