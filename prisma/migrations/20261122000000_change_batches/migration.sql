-- A batch is of one list and one moment: that is said once, and no longer in each of its changes.
ALTER TABLE "muster"."change_batches"
  ADD COLUMN "environment" TEXT,
  ADD COLUMN "company_id" UUID,
  ADD COLUMN "resource" TEXT,
  ADD COLUMN "run_id" UUID,
  ADD COLUMN "changed_at" TIMESTAMPTZ(6),
  ADD COLUMN "inserted_ids" TEXT[],
  ADD COLUMN "inserted_starts" INTEGER[],
  ADD COLUMN "inserted_lengths" INTEGER[],
  ADD COLUMN "inserted" BYTEA;

UPDATE "muster"."change_batches" b
SET "environment" = c."environment", "company_id" = c."company_id", "resource" = c."resource", "run_id" = c."run_id",
    "changed_at" = c."changed_at"
FROM "muster"."changes" c
WHERE c."batch_id" = b."id" AND c."position" = 0;

-- A batch without changes says nothing.
DELETE FROM "muster"."change_batches" WHERE "environment" IS NULL;
ALTER TABLE "muster"."change_batches"
  ALTER COLUMN "environment" SET NOT NULL,
  ALTER COLUMN "company_id" SET NOT NULL,
  ALTER COLUMN "resource" SET NOT NULL,
  ALTER COLUMN "changed_at" SET NOT NULL;

-- CreateIndex
CREATE INDEX "change_batches_environment_company_id_idx" ON "muster"."change_batches"("environment", "company_id");

-- What follows is beyond the schema language of Prisma.

-- Uncompressed, so that a record is read without what stands before it; hashes would not become smaller, and the rest takes longer to
-- compress than to write.
ALTER TABLE "muster"."change_batches"
  ALTER COLUMN "inserted" SET STORAGE EXTERNAL,
  ALTER COLUMN "inserted_ids" SET STORAGE EXTERNAL,
  ALTER COLUMN "inserted_starts" SET STORAGE EXTERNAL,
  ALTER COLUMN "inserted_lengths" SET STORAGE EXTERNAL;
ALTER TABLE "muster"."page_contents"
  ALTER COLUMN "ids" SET STORAGE EXTERNAL,
  ALTER COLUMN "keys" SET STORAGE EXTERNAL,
  ALTER COLUMN "texts" SET STORAGE EXTERNAL;

-- Every change with the number of its batch; stamped ones only. A batch whose changes are all inserts keeps them as one page.
CREATE VIEW "muster"."stamped_changes" AS
SELECT b."first_seq", c."position", b."resource", b."environment", b."company_id", c."record_id", c."op",
       CASE WHEN c."length" IS NULL THEN c."data" ELSE convert_from(substr(b."inserted", c."start", c."length"), 'UTF8')::jsonb END AS "data",
       b."changed_at", b."run_id"
FROM "muster"."change_batches" b
CROSS JOIN LATERAL (
  SELECT r."position", r."record_id", r."op", r."data", NULL::integer AS "start", NULL::integer AS "length"
  FROM "muster"."changes" r WHERE r."batch_id" = b."id"
  UNION ALL
  SELECT i."n"::integer - 1, i."id", 'insert', NULL::jsonb, i."start", i."length"
  FROM unnest(b."inserted_ids", b."inserted_starts", b."inserted_lengths") WITH ORDINALITY AS i("id", "start", "length", "n")
) c
WHERE b."first_seq" IS NOT NULL;

CREATE OR REPLACE VIEW "mirror"."changes" AS
SELECT "first_seq" + "position" AS "seq", "resource", "environment", "company_id", "record_id" AS "id", "op", "data", "changed_at", "run_id"
FROM "muster"."stamped_changes";

ALTER TABLE "muster"."changes"
  DROP COLUMN "resource",
  DROP COLUMN "environment",
  DROP COLUMN "company_id",
  DROP COLUMN "changed_at",
  DROP COLUMN "run_id";
