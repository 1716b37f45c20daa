import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { contractionsIn } from './contractions.js';

/** The last migration of the version before, with which processes of the next version share the database during an upgrade. */
const LAST_OF_BEFORE = '20261130140000_last_syncs';
const FOLDER = new URL('../../../prisma/migrations/', import.meta.url);

const migrations = readdirSync(FOLDER, { withFileTypes: true })
  .flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
  .filter((name) => name > LAST_OF_BEFORE)
  .map((name) => ({ name, sql: readFileSync(new URL(`${name}/migration.sql`, FOLDER), 'utf8') }));

test('every new migration leaves what the version before reads and writes, or says that its processes cannot go on', () => {
  const faults = migrations.flatMap(({ name, sql }) => {
    const saysSo = new RegExp(`UPDATE "muster"\\."compatibility" SET "needs" = '${name}'`).test(sql);
    return saysSo ? [] : contractionsIn(sql).map((what) => `${name}: ${what}`);
  });
  expect(faults).toEqual([]);
});

const TABLE = 'ALTER TABLE "muster"."runs"';

test.each([
  [`${TABLE} DROP COLUMN "mode"`, ['DROP COLUMN']],
  [`${TABLE} drop "mode"`, ['DROP']],
  [`${TABLE} RENAME COLUMN "mode" TO "way"`, ['RENAME']],
  [`${TABLE} RENAME TO "syncs"`, ['RENAME']],
  [`${TABLE} ALTER COLUMN "mode" TYPE UUID USING "mode"::uuid`, ['ALTER COLUMN TYPE']],
  [`${TABLE} ALTER "mode" SET DATA TYPE UUID`, ['ALTER COLUMN TYPE']],
  [`${TABLE} ALTER COLUMN "mode" SET NOT NULL`, ['SET NOT NULL']],
  [`${TABLE} ALTER COLUMN "mode" DROP DEFAULT`, ['DROP DEFAULT']],
  [`${TABLE} ADD COLUMN "way" TEXT NOT NULL`, ['ADD COLUMN NOT NULL without DEFAULT']],
  [
    `${TABLE} ADD COLUMN "why" TEXT,\nADD COLUMN "way" TEXT NOT NULL, ADD COLUMN "n" INT NOT NULL DEFAULT 0`,
    ['ADD COLUMN NOT NULL without DEFAULT'],
  ],
  [`${TABLE} ADD CONSTRAINT "runs_mode_check" CHECK ("mode" <> 'x')`, ['ADD CONSTRAINT']],
  [`${TABLE} ADD CHECK ("mode" <> 'x')`, ['ADD CONSTRAINT']],
  [`DROP TABLE "muster"."runs"`, ['DROP TABLE']],
  [`DROP VIEW IF EXISTS "warehouse"."lists"`, ['DROP VIEW']],
  [`DROP FUNCTION "muster"."stamp"()`, ['DROP FUNCTION']],
  [`CREATE UNIQUE INDEX "one" ON "muster"."runs" ("mode")`, ['CREATE UNIQUE INDEX']],
  [`DO $do$ BEGIN EXECUTE format('ALTER TABLE mirror.%I DROP COLUMN "a"', 'x'); END $do$`, ['DROP COLUMN']],
  [`DROP INDEX "muster"."runs_idx"`, []],
  [`${TABLE} ALTER COLUMN "mode" DROP NOT NULL`, []],
  [`${TABLE} DROP CONSTRAINT "runs_mode_check"`, []],
  [`${TABLE} ADD COLUMN "way" TEXT, ADD COLUMN "n" INT NOT NULL DEFAULT 0`, []],
  [`-- DROP TABLE "muster"."runs"\n/* RENAME TO */ SELECT 'DROP TABLE'`, []],
  [
    `CREATE TABLE "muster"."n" ("a" TEXT NOT NULL, CONSTRAINT "n_pkey" PRIMARY KEY ("a"), CHECK ("a" <> ''));\nCREATE UNIQUE INDEX "n_a" ON "muster"."n" ("a");\nALTER TABLE "muster"."n" ADD CONSTRAINT "n_fk" FOREIGN KEY ("a") REFERENCES "muster"."m" ("a")`,
    [],
  ],
  [`CREATE OR REPLACE VIEW "warehouse"."lists" AS SELECT 1`, []],
])('%s', (sql, expected) => {
  expect(contractionsIn(sql)).toEqual(expected);
});
