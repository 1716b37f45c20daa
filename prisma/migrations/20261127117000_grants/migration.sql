-- A grant is one authorization by one person, or one token that was handed in; its number counts within its connection. What there is was received
-- and proved under the first grant.
ALTER TABLE "muster"."connections" ADD COLUMN "grant_number" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "muster"."connections" ADD COLUMN "authorized_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP;
ALTER TABLE "muster"."connections" ADD COLUMN "grant_claims" TEXT;
UPDATE "muster"."connections" SET "authorized_at" = "created_at";

ALTER TABLE "muster"."lists" ADD COLUMN "grant_number" INTEGER NOT NULL DEFAULT 1;

-- Rows that an older process adds from now on have no number: what it has walked was under no grant that anybody knows.
ALTER TABLE "muster"."walks" ADD COLUMN "grant_number" INTEGER DEFAULT 1;
ALTER TABLE "muster"."walks" ALTER COLUMN "grant_number" DROP DEFAULT;
ALTER TABLE "muster"."barriers" ADD COLUMN "grant_number" INTEGER DEFAULT 1;
ALTER TABLE "muster"."barriers" ALTER COLUMN "grant_number" DROP DEFAULT;

ALTER TABLE "muster"."holds" ADD COLUMN "cause" TEXT NOT NULL DEFAULT 'share';
ALTER TABLE "muster"."holds" ADD COLUMN "grant_number" INTEGER;
ALTER TABLE "muster"."holds" ADD COLUMN "authorized_at" TIMESTAMPTZ(6);

-- CreateTable
CREATE TABLE "muster"."held_rows" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "id" TEXT COLLATE "C" NOT NULL,

    CONSTRAINT "held_rows_pkey" PRIMARY KEY ("environment","company_id","resource","id")
);

-- What follows is beyond the schema language of Prisma.

-- A list may have one open hold of each cause.
DROP INDEX "muster"."holds_one_open";
CREATE UNIQUE INDEX "holds_one_open" ON "muster"."holds"("environment", "company_id", "resource", "cause") WHERE "status" = 'open';

CREATE INDEX "holds_by_cause" ON "muster"."holds"("environment", "status", "cause", (-"seq"));

CREATE OR REPLACE VIEW "warehouse"."barriers" AS
SELECT "environment", "company_id", "resource", "seq", "verified_at", "records", "run_id", "number", "grant_number"
FROM "muster"."barriers" WHERE "number" IS NOT NULL;

-- Of a list that was never verified there is no grant under which it was.
CREATE OR REPLACE VIEW "warehouse"."lists" AS
SELECT l."environment", l."company_id", l."resource", l."last_verified_at", l."records",
       NOT c."paused" AND l."last_verified_at" < now() - make_interval(hours => s."stale_after_hours") AS "is_late",
       l."unverified_since", l."last_run_id", c."status" AS "company_status",
       CASE WHEN l."last_verified_at" IS NOT NULL THEN l."grant_number" END AS "grant_number"
FROM "muster"."lists" l
JOIN "muster"."connections" c ON c."environment" = l."environment" AND c."company_id" = l."company_id"
CROSS JOIN "muster"."warehouse_settings" s;
