-- Which feed the numbers are of: a restored one may give them a second time.
ALTER TABLE "muster"."change_sequence" ADD COLUMN "feed_id" UUID NOT NULL DEFAULT gen_random_uuid();

CREATE OR REPLACE VIEW "warehouse"."feed" AS
SELECT COALESCE(b."first_seq", s."next_seq") AS "first_seq", s."next_seq" - 1 AS "last_seq", b."changed_at" AS "kept_since", s."feed_id" AS "feed"
FROM "muster"."change_sequence" s
LEFT JOIN LATERAL (
  SELECT "first_seq", "changed_at" FROM "muster"."change_batches" WHERE "first_seq" IS NOT NULL ORDER BY "first_seq" LIMIT 1
) b ON true;
