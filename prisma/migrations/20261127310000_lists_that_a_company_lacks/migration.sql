-- The service's own sentence where it refused a list: of a walk that failed, or of one that found that the company does not have the list.
ALTER TABLE "muster"."walks" ADD COLUMN "service_says" TEXT;
-- Since when a list that the catalogue calls optional is known not to be there for its company.
ALTER TABLE "muster"."lists" ADD COLUMN "unavailable_since" TIMESTAMPTZ(6);

-- What follows is beyond the schema language of Prisma.

-- A list that a company does not have is not late.
CREATE OR REPLACE VIEW "warehouse"."lists" AS
SELECT l."environment", l."company_id", l."resource", l."last_verified_at", l."records",
       NOT c."paused" AND l."unavailable_since" IS NULL AND COALESCE(l."last_verified_at", GREATEST(c."created_at", l."begun_at"))
         < now() - make_interval(hours => s."stale_after_hours") AS "is_late",
       l."unverified_since", l."last_run_id", c."status" AS "company_status",
       CASE WHEN l."last_verified_at" IS NOT NULL THEN l."grant_number" END AS "grant_number",
       l."unavailable_since"
FROM "muster"."lists" l
JOIN "muster"."connections" c ON c."environment" = l."environment" AND c."company_id" = l."company_id"
CROSS JOIN "muster"."warehouse_settings" s;
