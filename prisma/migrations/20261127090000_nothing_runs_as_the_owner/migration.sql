-- A function that runs as its owner resolves names for whoever calls it: with a type of their own in pg_temp, readers ran code as the owner. None of our functions
-- does so any more. What a reader may see is shown by views alone, which resolve their names once, when they are made.

-- From which instant on as_of answers for a resource; a resource without a row is answered from its beginning on. While the feed is whole, there is none.
-- Of a feed whose beginning is gone, a record that was changed or deleted since, and whose version before is not kept, is not known before that change.
CREATE VIEW "warehouse"."as_of_limits" AS
SELECT o."resource", max(o."changed_at") AS "answered_from" FROM (
  SELECT DISTINCT ON (b."resource", b."environment", b."company_id", c."id") b."resource", c."op", b."changed_at"
  FROM "muster"."change_batches" b
  CROSS JOIN LATERAL (
    SELECT r."record_id" AS "id", r."op", r."position" FROM "muster"."changes" r WHERE r."batch_id" = b."id"
    UNION ALL
    SELECT w."id", COALESCE(w."op", 'insert'), w."n"::integer - 1
    FROM unnest(b."ids", b."ops") WITH ORDINALITY AS w("id", "op", "n")
  ) c
  WHERE b."first_seq" IS NOT NULL AND (SELECT f."first_seq" > 1 FROM "warehouse"."feed" f)
  ORDER BY b."resource", b."environment", b."company_id", c."id", b."first_seq" + c."position"
) o WHERE o."op" IN ('update', 'delete')
GROUP BY o."resource";

CREATE OR REPLACE FUNCTION "warehouse"."require_kept"("of_resource" TEXT, "instant" TIMESTAMPTZ) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  "answered_from" pg_catalog.timestamptz;
BEGIN
  IF "instant" IS NULL OR "instant" > clock_timestamp() THEN
    RAISE EXCEPTION 'as_of answers for the past: % is not known yet', COALESCE("instant"::pg_catalog.text, 'no instant') USING ERRCODE = '22023';
  END IF;
  SELECT l."answered_from" INTO "answered_from" FROM "warehouse"."as_of_limits" l WHERE l."resource" = "of_resource";
  IF "instant" < "answered_from" THEN
    RAISE EXCEPTION 'as_of(%, %) is not answered: some versions that were valid then are no longer kept', "of_resource", "instant"
      USING ERRCODE = '22023', HINT = format('Instants from %s on are answered. CHANGE_RETENTION_DAYS says how long changes are kept.', "answered_from");
  END IF;
  RETURN true;
END $$;
