-- Batches of whatever changes, not of inserts alone, keep the texts that they were received as. NULL: all are inserts.
ALTER TABLE "muster"."change_batches" ADD COLUMN "ops" TEXT[];

-- What follows is beyond the schema language of Prisma.

ALTER TABLE "muster"."change_batches" RENAME COLUMN "inserted_ids" TO "ids";
ALTER TABLE "muster"."change_batches" RENAME COLUMN "inserted_starts" TO "starts";
ALTER TABLE "muster"."change_batches" RENAME COLUMN "inserted_lengths" TO "lengths";
ALTER TABLE "muster"."change_batches" RENAME COLUMN "inserted" TO "texts";
ALTER TABLE "muster"."change_batches" ALTER COLUMN "ops" SET STORAGE EXTERNAL;

CREATE OR REPLACE VIEW "muster"."stamped_changes" AS
SELECT b."first_seq", c."position", b."resource", b."environment", b."company_id", c."record_id", c."op",
       CASE WHEN c."length" IS NULL THEN c."data" ELSE convert_from(substr(b."texts", c."start", c."length"), 'UTF8')::jsonb END AS "data",
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
