-- A record may have any number of keys: of a resource, the schema log keeps 2,000, and says when there were more.
ALTER TABLE "muster"."schema_resources" ADD COLUMN "keys_left_out_at" TIMESTAMPTZ(6);
DELETE FROM "muster"."schema_columns" WHERE "position" IS NULL AND "id" IN (
    SELECT "id" FROM (
        SELECT "id", row_number() OVER (PARTITION BY "resource" ORDER BY "position" NULLS LAST, "id") AS "n" FROM "muster"."schema_columns") "ranked"
    WHERE "n" > 2000);
