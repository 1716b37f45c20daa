-- Keys of nested objects and of the elements of arrays. A key is in the view that `resource` names, as until now; `list` is the resource whose records have
-- it. Processes of an older release know only the keys whose view is a resource's own, and write no `list`.
ALTER TABLE "muster"."schema_columns" ADD COLUMN "list" TEXT, ADD COLUMN "is_kept_whole" BOOLEAN NOT NULL DEFAULT false;
UPDATE "muster"."schema_columns" SET "list" = "resource";
CREATE FUNCTION "muster"."list_of_key"() RETURNS TRIGGER LANGUAGE plpgsql AS
$$ BEGIN NEW."list" := COALESCE(NEW."list", NEW."resource"); RETURN NEW; END $$;
CREATE TRIGGER "list_of_key" BEFORE INSERT ON "muster"."schema_columns" FOR EACH ROW EXECUTE FUNCTION "muster"."list_of_key"();
ALTER TABLE "muster"."schema_columns" ALTER COLUMN "list" SET NOT NULL,
  DROP CONSTRAINT "schema_columns_path_check", ADD CONSTRAINT "schema_columns_path_check" CHECK (cardinality("path") BETWEEN 1 AND 5);
CREATE INDEX "schema_columns_list_resource_position_idx" ON "muster"."schema_columns"("list", "resource", "position");

-- The views of array elements.
CREATE TABLE "muster"."schema_arrays" (
    "view" TEXT NOT NULL,
    "resource" TEXT NOT NULL,
    "path" TEXT[],
    "inner_path" TEXT[],

    CONSTRAINT "schema_arrays_pkey" PRIMARY KEY ("view")
);
CREATE UNIQUE INDEX "schema_arrays_path" ON "muster"."schema_arrays"("resource", "path", "inner_path") NULLS NOT DISTINCT;

-- The members of a record that are in no column. `plan` has each key that has a column: true where the column shows every value of it; otherwise an object with
-- the plan of the objects inside (`keys`), and whether a column shows a value that is no object (`own`). One function for each level, each with a body that
-- is parsed here: a function that a reader calls may not look for others in schema muster.
DO $do$ DECLARE deeper TEXT; BEGIN
  FOR level IN 1..5 LOOP
    deeper := CASE level WHEN 1 THEN 'm."value"' ELSE format('"muster"."rest_of_%s"(m."value", "plan" -> m."key" -> ''keys'')', level - 1) END;
    EXECUTE format($sql$
      CREATE FUNCTION "muster"."rest_of_%s"("value" JSONB, "plan" JSONB) RETURNS JSONB LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN (
        SELECT jsonb_object_agg("key", "rest") FROM (
          SELECT m."key", CASE
            WHEN jsonb_typeof(m."value") = 'null' OR "plan" -> m."key" = 'true' THEN NULL
            WHEN NOT "plan" ? m."key" OR m."value" = '{}' THEN m."value"
            WHEN jsonb_typeof(m."value") <> 'object' THEN CASE WHEN ("plan" -> m."key" -> 'own')::boolean THEN NULL ELSE m."value" END
            ELSE %s END AS "rest"
          FROM jsonb_each("value") m) each WHERE "rest" IS NOT NULL)
    $sql$, level, deeper);
  END LOOP;
END $do$;

CREATE OR REPLACE VIEW "warehouse"."columns" AS
SELECT "list" AS "resource", "name" AS "column", "path", "type", "position", "text_position" IS NOT NULL AS "has_text", "first_seen_at", "last_seen_at",
       "values", "nulls", "misfits", "declared", "resource" AS "view"
FROM "muster"."schema_columns" WHERE "position" IS NOT NULL;

-- The elements of arrays that are in the mirror now are counted there, as are maps.
INSERT INTO "muster"."schema_resources" ("resource", "rebuild_asked_at")
SELECT DISTINCT "list", now() FROM "muster"."schema_columns" WHERE "type" = 'jsonb' OR cardinality("path") = 2
ON CONFLICT ("resource") DO UPDATE SET "rebuild_asked_at" = EXCLUDED."rebuild_asked_at";
