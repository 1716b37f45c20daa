-- Any page of the change feed is read in the time of that page.

-- Where in the texts as received those of the batch begin: a commit of many changes is several batches, each with its own part of the texts.
ALTER TABLE "muster"."change_batches" ADD COLUMN "texts_from" INTEGER NOT NULL DEFAULT 1;

-- CreateTable
CREATE TABLE "muster"."change_numbers" (
    "seq" BIGINT NOT NULL,
    "batch_id" BIGINT NOT NULL
);

-- What follows is beyond the schema language of Prisma.

-- The arrays stand beside the row and not in it: numbering a batch writes its row anew, and looking for one passes over many.
ALTER TABLE "muster"."change_batches" SET (toast_tuple_target = 256);

-- Always true, and said to be expensive. PostgreSQL takes what a page asks for to be spread evenly over the table, and would begin at the
-- table's first row to find, behind half of it, the rows that a LIMIT wants. With this, which the index spares it, it uses the index.
CREATE FUNCTION "muster"."read_by_index"(BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 100 AS 'BEGIN RETURN true; END';

INSERT INTO "muster"."change_numbers" ("seq", "batch_id")
SELECT b."first_seq" + p, b."id"
FROM (SELECT * FROM "muster"."change_batches" WHERE "first_seq" IS NOT NULL ORDER BY "first_seq") b, generate_series(0, b."size" - 1) p;
CREATE UNIQUE INDEX "change_numbers_seq" ON "muster"."change_numbers"("seq") WHERE "muster"."read_by_index"("seq");
ANALYZE "muster"."change_numbers";

-- The numbers follow the batches whoever stamps or removes them: processes of the version before do both, too.
CREATE FUNCTION "muster"."number_changes"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "muster"."change_numbers" ("seq", "batch_id")
  SELECT NEW."first_seq" + p, NEW."id" FROM generate_series(0, NEW."size" - 1) p;
  RETURN NULL;
END $$;
CREATE TRIGGER "number_changes" AFTER UPDATE OF "first_seq" ON "muster"."change_batches"
FOR EACH ROW WHEN (OLD."first_seq" IS NULL AND NEW."first_seq" IS NOT NULL) EXECUTE FUNCTION "muster"."number_changes"();

CREATE FUNCTION "muster"."forget_numbers"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM "muster"."change_numbers"
  WHERE "muster"."read_by_index"("seq") AND "seq" BETWEEN OLD."first_seq" AND OLD."first_seq" + OLD."size" - 1;
  RETURN NULL;
END $$;
CREATE TRIGGER "forget_numbers" AFTER DELETE ON "muster"."change_batches"
FOR EACH ROW WHEN (OLD."first_seq" IS NOT NULL) EXECUTE FUNCTION "muster"."forget_numbers"();

-- An outer join by a unique key, and values by subselects: PostgreSQL leaves out what nobody asks for, and does not take the changes for a
-- join that multiplies rows, of which a LIMIT would need next to none.
CREATE OR REPLACE VIEW "mirror"."changes" AS
SELECT n."seq", b."resource", b."environment", b."company_id",
       CASE WHEN b."ids" IS NULL
            THEN (SELECT r."record_id" FROM "muster"."changes" r WHERE r."batch_id" = n."batch_id" AND r."position" = n."seq" - b."first_seq")
            ELSE b."ids"[n."seq" - b."first_seq" + 1] END AS "id",
       CASE WHEN b."ids" IS NULL
            THEN (SELECT r."op" FROM "muster"."changes" r WHERE r."batch_id" = n."batch_id" AND r."position" = n."seq" - b."first_seq")
            ELSE COALESCE(b."ops"[n."seq" - b."first_seq" + 1], 'insert') END AS "op",
       CASE WHEN b."ids" IS NULL
            THEN (SELECT r."data" FROM "muster"."changes" r WHERE r."batch_id" = n."batch_id" AND r."position" = n."seq" - b."first_seq")
            ELSE convert_from(substr(b."texts", b."starts"[n."seq" - b."first_seq" + 1] - b."texts_from" + 1, b."lengths"[n."seq" - b."first_seq" + 1]), 'UTF8')::jsonb
       END AS "data",
       b."changed_at", b."run_id"
FROM "muster"."change_numbers" n
LEFT JOIN "muster"."change_batches" b ON b."id" = n."batch_id"
WHERE "muster"."read_by_index"(n."seq");

-- For processes of the version before.
CREATE OR REPLACE VIEW "muster"."stamped_changes" AS
SELECT b."first_seq", c."position", b."resource", b."environment", b."company_id", c."record_id", c."op",
       CASE WHEN c."length" IS NULL THEN c."data"
            ELSE convert_from(substr(b."texts", c."start" - b."texts_from" + 1, c."length"), 'UTF8')::jsonb END AS "data",
       b."changed_at", b."run_id"
FROM "muster"."change_batches" b
CROSS JOIN LATERAL (
  SELECT r."position", r."record_id", r."op", r."data", NULL::integer AS "start", NULL::integer AS "length"
  FROM "muster"."changes" r WHERE r."batch_id" = b."id"
  UNION ALL
  SELECT w."n"::integer - 1, w."id", COALESCE(w."op", 'insert'), NULL::jsonb, w."start", w."length"
  FROM unnest(b."ids", b."starts", b."lengths", b."ops") WITH ORDINALITY AS w("id", "start", "length", "op", "n")
) c
WHERE b."first_seq" IS NOT NULL;
