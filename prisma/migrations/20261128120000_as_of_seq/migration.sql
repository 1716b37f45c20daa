-- The changes of one list are read by their numbers, and a list is answered as of a number. A past that is not whole is refused by its cause.

-- AlterTable
ALTER TABLE "muster"."change_numbers" ADD COLUMN "resource" TEXT;

-- CreateTable
CREATE TABLE "muster"."removed_changes" (
    "resource" TEXT NOT NULL,
    "last_seq" BIGINT NOT NULL,
    "last_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "removed_changes_pkey" PRIMARY KEY ("resource")
);

-- CreateTable
CREATE TABLE "muster"."purges" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "cause" TEXT NOT NULL,
    "purged_at" TIMESTAMPTZ(6) NOT NULL,
    "batch_id" BIGINT NOT NULL,

    CONSTRAINT "purges_pkey" PRIMARY KEY ("environment", "company_id", "resource", "cause")
);

-- What follows is beyond the schema language of Prisma.

-- The numbers of a list, without those of other lists. An update and no rewrite of the table: older snapshots must go on to see all numbers.
DROP INDEX "muster"."change_numbers_seq";
UPDATE "muster"."change_numbers" n SET "resource" = b."resource" FROM "muster"."change_batches" b WHERE b."id" = n."batch_id";
DELETE FROM "muster"."change_numbers" WHERE "resource" IS NULL;
ALTER TABLE "muster"."change_numbers" ALTER COLUMN "resource" SET NOT NULL;
CREATE UNIQUE INDEX "change_numbers_seq" ON "muster"."change_numbers"("seq") WHERE "muster"."read_by_index"("seq");
CREATE INDEX "change_numbers_resource_seq" ON "muster"."change_numbers"("resource", "seq") WHERE "muster"."read_by_index"("seq");
ANALYZE "muster"."change_numbers";

-- Where the planner knows nothing of the numbers yet, it expects few of a list, and would rather sort all of them than read the first ones by the index.
ALTER FUNCTION "muster"."read_by_index"(BIGINT) COST 100000;

CREATE OR REPLACE FUNCTION "muster"."number_changes"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "muster"."change_numbers" ("seq", "batch_id", "resource")
  SELECT NEW."first_seq" + p, NEW."id", NEW."resource" FROM generate_series(0, NEW."size" - 1) p;
  RETURN NULL;
END $$;

-- Retention also says of each list how far the removed changes went: a record that was deleted before has no trace left.
CREATE OR REPLACE FUNCTION "muster"."forget_numbers"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM "muster"."change_numbers"
  WHERE "muster"."read_by_index"("seq") AND "seq" BETWEEN OLD."first_seq" AND OLD."first_seq" + OLD."size" - 1;
  INSERT INTO "muster"."removed_changes" AS r ("resource", "last_seq", "last_at")
  VALUES (OLD."resource", OLD."first_seq" + OLD."size" - 1, OLD."changed_at")
  ON CONFLICT ("resource") DO UPDATE
  SET "last_seq" = GREATEST(r."last_seq", EXCLUDED."last_seq"), "last_at" = GREATEST(r."last_at", EXCLUDED."last_at");
  RETURN NULL;
END $$;

-- How far retention went before is known of the whole feed alone.
INSERT INTO "muster"."removed_changes" ("resource", "last_seq", "last_at")
SELECT DISTINCT l."resource", f."first_seq" - 1, COALESCE(f."kept_since", now())
FROM "muster"."lists" l CROSS JOIN "warehouse"."feed" f WHERE f."first_seq" > 1;

-- Earlier purges have left no note. A change that says what a record became, and has no data, was purged.
INSERT INTO "muster"."purges" ("environment", "company_id", "resource", "cause", "purged_at", "batch_id")
SELECT b."environment", b."company_id", b."resource",
       CASE WHEN bool_or(c."company_id" IS NOT NULL) THEN 'rules' ELSE 'removal' END, now(), max(b."id")
FROM "muster"."change_batches" b
LEFT JOIN "muster"."connections" c ON c."environment" = b."environment" AND c."company_id" = b."company_id"
GROUP BY b."environment", b."company_id", b."resource"
HAVING bool_or(b."ids" IS NOT NULL AND b."texts" IS NULL OR EXISTS (
  SELECT FROM "muster"."changes" r WHERE r."batch_id" = b."id" AND r."data" IS NULL AND r."op" <> 'delete'));

-- From which instant and which number on the past of a resource is answered; a resource without a row is answered from its beginning on. "cause" is that
-- of the instant. Retention: changes that are removed say nothing, and a record that was changed or deleted since, and whose version before is not
-- kept, is not known before that change. A purge: versions before it have no data. Its last batch may have no number yet; no number is answered then.
CREATE OR REPLACE VIEW "warehouse"."as_of_limits" AS
WITH unknown_before AS (
  SELECT o."resource", max(o."changed_at") AS "at", max(o."seq") AS "seq" FROM (
    SELECT DISTINCT ON (b."resource", b."environment", b."company_id", c."id")
      b."resource", c."op", b."changed_at", b."first_seq" + c."position" AS "seq"
    FROM "muster"."change_batches" b
    CROSS JOIN LATERAL (
      SELECT r."record_id" AS "id", r."op", r."position" FROM "muster"."changes" r WHERE r."batch_id" = b."id"
      UNION ALL
      SELECT w."id", COALESCE(w."op", 'insert'), w."n"::integer - 1
      FROM unnest(b."ids", b."ops") WITH ORDINALITY AS w("id", "op", "n")
    ) c
    WHERE b."first_seq" IS NOT NULL AND (SELECT f."first_seq" > 1 FROM "warehouse"."feed" f)
    ORDER BY b."resource", b."environment", b."company_id", c."id", b."first_seq" + c."position"
  ) o WHERE o."op" IN ('update', 'delete')
  GROUP BY o."resource"
), losses AS (
  SELECT "resource", "at", "seq", 'retention' AS "cause" FROM unknown_before
  UNION ALL
  SELECT "resource", "last_at", "last_seq", 'retention' FROM "muster"."removed_changes"
  UNION ALL
  SELECT p."resource", p."purged_at", CASE WHEN b."id" IS NOT NULL THEN COALESCE(b."first_seq" + b."size" - 1, s."next_seq") END, p."cause"
  FROM "muster"."purges" p CROSS JOIN "muster"."change_sequence" s LEFT JOIN "muster"."change_batches" b ON b."id" = p."batch_id"
)
SELECT "resource", max("at") AS "answered_from", max("seq") AS "answered_from_seq", (array_agg("cause" ORDER BY "at" DESC))[1] AS "cause"
FROM losses GROUP BY "resource";

CREATE FUNCTION "warehouse"."refuse_past"("asked" TEXT, "of_resource" TEXT, "limits" "warehouse"."as_of_limits", "answered" TEXT) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION '% is not answered: %', "asked", CASE "limits"."cause"
      WHEN 'rules' THEN 'what was true then was rewritten by new privacy rules'
      WHEN 'removal' THEN 'a company that had the list then was removed, and its data with it'
      ELSE 'some versions that were valid then are no longer kept' END
    USING ERRCODE = '22023', HINT = format('%s on are answered. %s', "answered", CASE "limits"."cause"
      WHEN 'retention' THEN 'CHANGE_RETENTION_DAYS says how long changes are kept.'
      ELSE format('warehouse.%s has what is left of the versions before.', quote_ident("of_resource" || '_history')) END);
END $$;

CREATE OR REPLACE FUNCTION "warehouse"."require_kept"("of_resource" TEXT, "instant" TIMESTAMPTZ) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  "limits" "warehouse"."as_of_limits";
BEGIN
  IF "instant" IS NULL OR "instant" > clock_timestamp() THEN
    RAISE EXCEPTION 'as_of answers for the past: % is not known yet', COALESCE("instant"::pg_catalog.text, 'no instant') USING ERRCODE = '22023';
  END IF;
  SELECT l.* INTO "limits" FROM "warehouse"."as_of_limits" l WHERE l."resource" = "of_resource";
  IF "instant" < "limits"."answered_from" THEN
    PERFORM "warehouse"."refuse_past"(format('as_of(%s, %s)', "of_resource", "instant"), "of_resource", "limits",
      format('Instants from %s', "limits"."answered_from"));
  END IF;
  RETURN true;
END $$;

-- A number is known once it is given: every change up to it is there.
CREATE FUNCTION "warehouse"."require_kept_seq"("of_resource" TEXT, "seq" BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  "last" pg_catalog.int8;
  "limits" "warehouse"."as_of_limits";
BEGIN
  SELECT f."last_seq" INTO "last" FROM "warehouse"."feed" f;
  IF "seq" IS NULL OR "seq" > "last" THEN
    RAISE EXCEPTION 'as_of_seq answers up to %, the last number of the feed: % is not known yet', "last", COALESCE("seq"::pg_catalog.text, 'no number')
      USING ERRCODE = '22023';
  END IF;
  SELECT l.* INTO "limits" FROM "warehouse"."as_of_limits" l WHERE l."resource" = "of_resource";
  IF "seq" < "limits"."answered_from_seq" THEN
    PERFORM "warehouse"."refuse_past"(format('as_of_seq(%s, %s)', "of_resource", "seq"), "of_resource", "limits",
      format('Numbers from %s', "limits"."answered_from_seq"));
  END IF;
  RETURN true;
END $$;
