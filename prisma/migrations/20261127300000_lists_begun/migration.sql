-- When a list was walked for the first time, or its proofs were given up: from then on its first proof is due. Of lists that there are it is not known, and
-- the time when their company was onboarded stands for it.
ALTER TABLE "muster"."lists" ADD COLUMN "begun_at" TIMESTAMPTZ(6);
ALTER TABLE "muster"."lists" ALTER COLUMN "begun_at" SET DEFAULT CURRENT_TIMESTAMP;

-- What follows is beyond the schema language of Prisma.

-- A list that was never proved is late, too, once its first proof should have been there.
CREATE OR REPLACE VIEW "warehouse"."lists" AS
SELECT l."environment", l."company_id", l."resource", l."last_verified_at", l."records",
       NOT c."paused" AND COALESCE(l."last_verified_at", GREATEST(c."created_at", l."begun_at"))
         < now() - make_interval(hours => s."stale_after_hours") AS "is_late",
       l."unverified_since", l."last_run_id", c."status" AS "company_status",
       CASE WHEN l."last_verified_at" IS NOT NULL THEN l."grant_number" END AS "grant_number"
FROM "muster"."lists" l
JOIN "muster"."connections" c ON c."environment" = l."environment" AND c."company_id" = l."company_id"
CROSS JOIN "muster"."warehouse_settings" s;
