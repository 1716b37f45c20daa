-- Before PostgreSQL 17 these two call functions of schema muster. A body that is a text is read again in each query of a view, with the rights of whoever
-- reads, and a reader has none on that schema: every view with a day or a moment was refused. A body after RETURN is read once, here.
DO $do$ BEGIN
  IF current_setting('server_version_num')::integer < 170000 THEN
    CREATE OR REPLACE FUNCTION "muster"."date_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS DATE LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN "muster"."is_date"("text") THEN "text"::pg_catalog.date END;
    CREATE OR REPLACE FUNCTION "muster"."timestamptz_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS TIMESTAMPTZ LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN "muster"."is_timestamptz"("text") THEN "text"::pg_catalog.timestamptz END;
  END IF;
END $do$;
