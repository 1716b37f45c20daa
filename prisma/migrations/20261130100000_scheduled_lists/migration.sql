-- Lists that are walked by a schedule of their own.

-- AlterTable
ALTER TABLE "muster"."connections" ADD COLUMN "lists_planned" BOOLEAN NOT NULL DEFAULT false;

-- AlterTable
ALTER TABLE "muster"."warehouse_settings" ADD COLUMN "list_minutes" JSONB NOT NULL DEFAULT '{}';

-- CreateTable
CREATE TABLE "muster"."scheduled_lists" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "next_sync_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "scheduled_lists_pkey" PRIMARY KEY ("environment", "company_id", "resource")
);

-- CreateIndex
CREATE INDEX "scheduled_lists_next_sync_at_idx" ON "muster"."scheduled_lists"("next_sync_at");

-- AddForeignKey
ALTER TABLE "muster"."scheduled_lists" ADD CONSTRAINT "scheduled_lists_environment_company_id_fkey" FOREIGN KEY ("environment", "company_id") REFERENCES "muster"."connections"("environment", "company_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What follows is beyond the schema language of Prisma.

-- The look for companies whose lists are not planned yet.
CREATE INDEX "connections_not_planned" ON "muster"."connections"("environment", "company_id") WHERE NOT "lists_planned";

-- A list with a schedule of its own is late by that schedule.
CREATE OR REPLACE VIEW "warehouse"."lists" AS
SELECT l."environment", l."company_id", l."resource", l."last_verified_at", l."records",
       NOT c."paused" AND l."unavailable_since" IS NULL AND COALESCE(l."last_verified_at", GREATEST(c."created_at", l."begun_at"))
         < now() - make_interval(mins => COALESCE((s."list_minutes" ->> l."resource")::int, s."stale_after_hours" * 60)) AS "is_late",
       l."unverified_since", l."last_run_id", c."status" AS "company_status",
       CASE WHEN l."last_verified_at" IS NOT NULL THEN l."grant_number" END AS "grant_number",
       l."unavailable_since"
FROM "muster"."lists" l
JOIN "muster"."connections" c ON c."environment" = l."environment" AND c."company_id" = l."company_id"
CROSS JOIN "muster"."warehouse_settings" s;
