-- Runs that verify: a second reading of a company's lists, which changes nothing of the mirror.
ALTER TABLE "muster"."connections" ADD COLUMN "verify_turn_at" TIMESTAMPTZ(6);
ALTER TABLE "muster"."walks" ADD COLUMN "kind" TEXT NOT NULL DEFAULT 'sync', ADD COLUMN "verify" JSONB;

-- CreateTable
CREATE TABLE "muster"."second_readings" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "run_id" UUID NOT NULL,
    "faults" INTEGER NOT NULL,
    "read_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "second_readings_pkey" PRIMARY KEY ("environment","company_id","resource")
);

-- AddForeignKey
ALTER TABLE "muster"."second_readings" ADD CONSTRAINT "second_readings_environment_company_id_fkey"
FOREIGN KEY ("environment", "company_id") REFERENCES "muster"."connections"("environment", "company_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What follows is beyond the schema language of Prisma.

-- What is received waits here for the end of its reading. A server that crashes empties the table, and the reading begins anew as it would anyway.
-- Ids are ordered as those of the mirror's tables are.
CREATE UNLOGGED TABLE "muster"."second_reading_records" (
    "walk_id" UUID NOT NULL,
    "id" TEXT COLLATE "C" NOT NULL,
    "pass" INTEGER NOT NULL,
    "row_hash" BYTEA,
    "text" TEXT,

    CONSTRAINT "second_reading_records_pkey" PRIMARY KEY ("walk_id","id")
);

-- AddForeignKey
ALTER TABLE "muster"."second_reading_records" ADD CONSTRAINT "second_reading_records_walk_id_fkey"
FOREIGN KEY ("walk_id") REFERENCES "muster"."walks"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE "muster"."runs" ADD COLUMN "kind" TEXT NOT NULL
GENERATED ALWAYS AS (CASE WHEN "trigger" IN ('verify', 'nightly_verify') THEN 'verify' ELSE 'sync' END) STORED;

-- A verification waits for no sync to be asked for, nor a sync for a verification: a company has one active run of each.
DROP INDEX "muster"."runs_one_active";
CREATE UNIQUE INDEX "runs_one_active" ON "muster"."runs"("environment", "company_id", "kind") WHERE "status" IN ('queued', 'running');

-- What became of a list's walks is not for a second reading to say.
DROP INDEX "muster"."walks_ended";
CREATE INDEX "walks_ended" ON "muster"."walks"("environment", "company_id", "resource", "finished_at")
WHERE "status" IN ('succeeded', 'failed') AND "finished_at" IS NOT NULL AND "kind" = 'sync';

-- Whose turn it is.
CREATE INDEX "connections_verify_turn" ON "muster"."connections"("environment", "verify_turn_at" NULLS FIRST, "company_id") WHERE "status" = 'active';

-- Few lists differ.
CREATE INDEX "second_readings_that_found" ON "muster"."second_readings"("environment") WHERE "faults" > 0;

-- Facts are about syncs: whoever reads the newest run of a company from them must not find a verification.
CREATE OR REPLACE VIEW "warehouse"."runs" AS
SELECT "id" AS "run_id", "environment", "company_id", "trigger", "mode", "status", "attempts", "error" ->> 'code' AS "error_code",
       "created_at", "started_at", "finished_at"
FROM "muster"."runs" WHERE "kind" = 'sync';

CREATE OR REPLACE VIEW "warehouse"."walks" AS
SELECT "id" AS "walk_id", "run_id", "environment", "company_id", "resource", "status", "verified", "proof", "unverified_reason",
       "pages", "pass" AS "passes", "received", "inserted", "updated", "unchanged", "deleted", "rejected", "duplicates", "total_records",
       "resumed", "error" ->> 'code' AS "error_code", "started_at", "finished_at"
FROM "muster"."walks" WHERE "kind" = 'sync';
