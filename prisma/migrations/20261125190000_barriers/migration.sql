-- Up to where in the change feed a list was complete.
CREATE TABLE "muster"."barriers" (
    "id" BIGSERIAL NOT NULL,
    "number" BIGINT,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "batch_id" BIGINT,
    "seq" BIGINT,
    "verified_at" TIMESTAMPTZ(6) NOT NULL,
    "records" INTEGER NOT NULL,
    "run_id" UUID NOT NULL,

    CONSTRAINT "barriers_pkey" PRIMARY KEY ("id")
);

-- AlterTable
ALTER TABLE "muster"."change_sequence" ADD COLUMN "next_barrier" BIGINT NOT NULL DEFAULT 1;

-- CreateIndex
CREATE UNIQUE INDEX "barriers_number_key" ON "muster"."barriers"("number");

-- CreateIndex
CREATE INDEX "barriers_environment_company_id_resource_id_idx" ON "muster"."barriers"("environment", "company_id", "resource", "id");

-- The last batch of a list, and its history, without those of the company's other lists.
CREATE INDEX "change_batches_environment_company_id_resource_id_idx" ON "muster"."change_batches"("environment", "company_id", "resource", "id");
DROP INDEX "muster"."change_batches_environment_company_id_idx";

-- CreateTable
CREATE TABLE "muster"."warehouse_settings" (
    "only" BOOLEAN NOT NULL DEFAULT true,
    "stale_after_hours" INTEGER NOT NULL DEFAULT 26,

    CONSTRAINT "warehouse_settings_pkey" PRIMARY KEY ("only")
);

-- What follows is beyond the schema language of Prisma.

ALTER TABLE "muster"."warehouse_settings" ADD CONSTRAINT "warehouse_settings_only" CHECK ("only");
INSERT INTO "muster"."warehouse_settings" DEFAULT VALUES;

-- Either the number is known, or the batch whose number it will be.
ALTER TABLE "muster"."barriers" ADD CONSTRAINT "barriers_seq_or_batch" CHECK (num_nonnulls("seq", "batch_id") = 1);

-- Those without a number are few, and looked for every second.
CREATE INDEX "barriers_unnumbered" ON "muster"."barriers"("id") WHERE "number" IS NULL;

-- Schema "warehouse" is for readers who see nothing of schema "muster": its views read with the rights of their owner.
CREATE SCHEMA IF NOT EXISTS "warehouse";

CREATE VIEW "warehouse"."barriers" AS
SELECT "environment", "company_id", "resource", "seq", "verified_at", "records", "run_id", "number"
FROM "muster"."barriers" WHERE "number" IS NOT NULL;

-- Of an error its code, since what it says may quote the service.
CREATE VIEW "warehouse"."runs" AS
SELECT "id" AS "run_id", "environment", "company_id", "trigger", "mode", "status", "attempts", "error" ->> 'code' AS "error_code",
       "created_at", "started_at", "finished_at"
FROM "muster"."runs";

CREATE VIEW "warehouse"."walks" AS
SELECT "id" AS "walk_id", "run_id", "environment", "company_id", "resource", "status", "verified", "proof", "unverified_reason",
       "pages", "pass" AS "passes", "received", "inserted", "updated", "unchanged", "deleted", "rejected", "duplicates", "total_records",
       "resumed", "error" ->> 'code' AS "error_code", "started_at", "finished_at"
FROM "muster"."walks";

-- A list that was never verified is neither late nor not late.
CREATE VIEW "warehouse"."lists" AS
SELECT l."environment", l."company_id", l."resource", l."last_verified_at", l."records",
       NOT c."paused" AND l."last_verified_at" < now() - make_interval(hours => s."stale_after_hours") AS "is_late",
       l."unverified_since", l."last_run_id", c."status" AS "company_status"
FROM "muster"."lists" l
JOIN "muster"."connections" c ON c."environment" = l."environment" AND c."company_id" = l."company_id"
CROSS JOIN "muster"."warehouse_settings" s;

-- What of the change feed is kept. No change is older than "kept_since" by much; the first of all has the number 1.
CREATE VIEW "warehouse"."feed" AS
SELECT COALESCE(b."first_seq", s."next_seq") AS "first_seq", s."next_seq" - 1 AS "last_seq", b."changed_at" AS "kept_since"
FROM "muster"."change_sequence" s
LEFT JOIN LATERAL (
  SELECT "first_seq", "changed_at" FROM "muster"."change_batches" WHERE "first_seq" IS NOT NULL ORDER BY "first_seq" LIMIT 1
) b ON true;

-- Which instants as_of answers: those for which every version is kept that was valid then. While the feed is whole, that is all of the past. Of a
-- feed whose beginning is gone, a record that was changed or deleted since, and whose version before is not kept, is not known before that change.
CREATE FUNCTION "warehouse"."require_kept"("of_resource" TEXT, "instant" TIMESTAMPTZ) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
  "answered_from" TIMESTAMPTZ;
BEGIN
  IF "instant" IS NULL OR "instant" > clock_timestamp() THEN
    RAISE EXCEPTION 'as_of answers for the past: % is not known yet', COALESCE("instant"::text, 'no instant') USING ERRCODE = '22023';
  END IF;
  IF (SELECT f."first_seq" > 1 FROM "warehouse"."feed" f) THEN
    SELECT max(o."changed_at") INTO "answered_from" FROM (
      SELECT DISTINCT ON (b."environment", b."company_id", c."id") c."op", b."changed_at"
      FROM "muster"."change_batches" b
      CROSS JOIN LATERAL (
        SELECT r."record_id" AS "id", r."op", r."position" FROM "muster"."changes" r WHERE r."batch_id" = b."id"
        UNION ALL
        SELECT w."id", COALESCE(w."op", 'insert'), w."n"::integer - 1
        FROM unnest(b."ids", b."ops") WITH ORDINALITY AS w("id", "op", "n")
      ) c
      WHERE b."resource" = "of_resource" AND b."first_seq" IS NOT NULL
      ORDER BY b."environment", b."company_id", c."id", b."first_seq" + c."position"
    ) o WHERE o."op" IN ('update', 'delete');
    IF "instant" < "answered_from" THEN
      RAISE EXCEPTION 'as_of(%, %) is not answered: some versions that were valid then are no longer kept', "of_resource", "instant"
        USING ERRCODE = '22023', HINT = format('Instants from %s on are answered. CHANGE_RETENTION_DAYS says how long changes are kept.', "answered_from");
    END IF;
  END IF;
  RETURN true;
END $$;
