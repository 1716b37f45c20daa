-- Processes of an older release must leave the log alone: they take a date with a time and no zone for a value that does not fit a text, give columns to the
-- members of maps, and count a list without its arrays. They ask for the cursor under its former name, and find that another process has it.
ALTER TABLE "muster"."schema_cursor" RENAME TO "schema_log_cursor";
ALTER TABLE "muster"."schema_log_cursor" RENAME CONSTRAINT "schema_cursor_pkey" TO "schema_log_cursor_pkey";
CREATE VIEW "muster"."schema_cursor" AS SELECT * FROM "muster"."schema_log_cursor" WHERE false;

-- The type that the catalogue declares for a column, for example numeric(12,2), and further columns of the same key with other types: the twins.
-- "twin_due" is the kind of value of which the mirror has to be asked whether it is the only one; "twin_answers" are the last answers, by kind.
-- "converts": the column was declared at some time, and also shows texts that say the same as a value of its type. A twin says so in its own object.
ALTER TABLE "muster"."schema_columns" ADD COLUMN "declared" TEXT,
  ADD COLUMN "converts" BOOLEAN NOT NULL DEFAULT false,
  ADD COLUMN "twins" JSONB NOT NULL DEFAULT '[]',
  ADD COLUMN "twin_due" TEXT,
  ADD COLUMN "twin_answers" JSONB NOT NULL DEFAULT '{}',
  DROP CONSTRAINT "schema_columns_type_check",
  ADD CONSTRAINT "schema_columns_type_check" CHECK ("type" IN ('text', 'boolean', 'numeric', 'date', 'timestamp', 'timestamptz', 'jsonb'));
CREATE INDEX "schema_columns_twin_due" ON "muster"."schema_columns"("resource") WHERE "twin_due" IS NOT NULL;

CREATE OR REPLACE VIEW "warehouse"."columns" AS
SELECT "resource", "name" AS "column", "path", "type", "position", "text_position" IS NOT NULL AS "has_text", "first_seen_at", "last_seen_at",
       "values", "nulls", "misfits", "declared"
FROM "muster"."schema_columns" WHERE "position" IS NOT NULL;

-- Whether a text is a date and a time without a zone, with a T or a space between them: PostgreSQL itself would take more forms and ignore a zone. Without its digits
-- such a text is one of six, which is cheaper to ask than a regular expression. The years are 1 to 9999, after rounding to microseconds.
-- PostgreSQL 15 has no question for a text, as with is_timestamptz.
DO $do$ BEGIN
  IF current_setting('server_version_num')::integer >= 160000 THEN
    CREATE FUNCTION "muster"."is_timestamp"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN ($1 LIKE '____-__-__T__:__%' OR $1 LIKE '____-__-__ __:__%')
         AND ($1 LIKE '________________' OR $1 LIKE '________________:__' OR $1 LIKE '________________:__._%')
         AND translate($1, '0123456789', '') IN ('--T:', '--T::', '--T::.', '-- :', '-- ::', '-- ::.') AND length($1) <= 50 AND $1 NOT LIKE '%:60.%'
         AND pg_input_is_valid($1, 'timestamp')
       THEN CASE WHEN $1 LIKE '9999-12-31%' THEN $1::pg_catalog.timestamp < '10000-01-01 00:00:00'::pg_catalog.timestamp ELSE true END
       ELSE false END $$;
  ELSE
    CREATE FUNCTION "muster"."is_timestamp"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN ($1 LIKE '____-__-__T__:__%' OR $1 LIKE '____-__-__ __:__%') AND
      $1 ~ '^(?:(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)[T ](?:(?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9](?:[.][0-9]{1,30})?|60))?|24:00(?::00(?:[.]0{1,30})?)?)$'
       THEN CASE WHEN $1 LIKE '9999-12-31%' THEN $1::pg_catalog.timestamp < '10000-01-01 00:00:00'::pg_catalog.timestamp ELSE true END
       ELSE false END $$;
  END IF;
END $do$;

-- The moment without a zone at a path of a record, as timestamptz_at gives moments with one. Before PostgreSQL 17 it calls a function of schema muster, on which
-- readers have no right: its body is read once, here.
DO $do$ BEGIN
  IF current_setting('server_version_num')::integer >= 170000 THEN
    CREATE FUNCTION "muster"."timestamp_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS TIMESTAMP LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN ("text" LIKE '____-__-__T__:__%' OR "text" LIKE '____-__-__ __:__%')
         AND ("text" LIKE '________________' OR "text" LIKE '________________:__' OR "text" LIKE '________________:__._%')
         AND translate("text", '0123456789', '') IN ('--T:', '--T::', '--T::.', '-- :', '-- ::', '-- ::.') AND length("text") <= 50 AND "text" NOT LIKE '%:60.%'
         AND ("text" NOT LIKE '9999-12-31%'
           OR JSON_VALUE("data", "path" RETURNING timestamp NULL ON ERROR) < '10000-01-01 00:00:00'::pg_catalog.timestamp)
       THEN JSON_VALUE("data", "path" RETURNING timestamp NULL ON ERROR) END $$;
  ELSE
    CREATE FUNCTION "muster"."timestamp_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS TIMESTAMP LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN "muster"."is_timestamp"("text") THEN "text"::pg_catalog.timestamp END;
  END IF;
END $do$;

-- The kind of a value; null where there is none. A text beyond the years has a kind of its own, as with dates and moments that have a zone.
CREATE OR REPLACE FUNCTION "muster"."kind_of"(JSONB) RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN jsonb_typeof($1) IS DISTINCT FROM 'string' THEN jsonb_typeof($1)
     WHEN $1 #>> '{}' LIKE '____-__-__%' AND "muster"."is_date"($1 #>> '{}') THEN 'date'
     WHEN $1 #>> '{}' LIKE '____-__-__%' AND "muster"."is_timestamptz"($1 #>> '{}') THEN 'timestamptz'
     WHEN $1 #>> '{}' LIKE '____-__-__%' AND "muster"."is_timestamp"($1 #>> '{}') THEN 'timestamp'
     WHEN $1 #>> '{}' LIKE '0000-__-__%' OR $1 #>> '{}' LIKE '0001-01-01T%' OR $1 #>> '{}' LIKE '9999-__-__%'
       OR $1 #>> '{}' LIKE '_____-__-__%' OR $1 #>> '{}' LIKE '_______-__-__%'
     THEN CASE
       WHEN $1 #>> '{}' ~ '^(0000|0001|9999|[+-]?[0-9]{5,6})-[0-9]{2}-[0-9]{2}$' THEN 'date_beyond'
       WHEN $1 #>> '{}' ~ '^(0000|0001|9999|[+-]?[0-9]{5,6})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})$' THEN 'timestamptz_beyond'
       WHEN $1 #>> '{}' ~ '^(0000|9999|[+-]?[0-9]{5,6})-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?$' THEN 'timestamp_beyond'
       ELSE 'string' END
     ELSE 'string' END $$;

-- The values of columns that convert: values of their type, and texts that say the same without loss. None fails for any value. Readers have no right on schema
-- muster, so each body is read once, here.
-- A numeral is digits with at most one point. PostgreSQL itself would take more: NaN, Infinity, 1_000, 0x1F, and 1e999999, on which it fails.
CREATE FUNCTION "muster"."declared_numeric"("value" JSONB, "text" TEXT) RETURNS NUMERIC LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE jsonb_typeof("value") WHEN 'number' THEN ("value")::numeric
  WHEN 'string' THEN CASE WHEN length("text") <= 1000 AND "text" ~ '^-?[0-9]+([.][0-9]+)?$' THEN "text"::numeric END END;

CREATE FUNCTION "muster"."declared_boolean"("value" JSONB, "text" TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof("value") IN ('boolean', 'string') AND length("text") <= 5
  THEN CASE lower("text" COLLATE "C") WHEN 'true' THEN true WHEN 'false' THEN false END END;

-- A date and a time that is midnight is the date as it is written, whatever its zone.
CREATE FUNCTION "muster"."declared_date"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS DATE LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN "text" LIKE '____-__-__' THEN "muster"."date_at"("data", "path", "text")
  WHEN "text" LIKE '____-__-__T00:00%' OR "text" LIKE '____-__-__ 00:00%' THEN CASE
    WHEN "text" ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]00:00(:00([.]0{1,30})?)?(Z|[+-](0[0-9]|1[0-5]):[0-5][0-9])?$'
    THEN "muster"."date_at"(to_jsonb(left("text", 10)), '$', left("text", 10)) END END;

CREATE FUNCTION "muster"."declared_timestamp"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS TIMESTAMP LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN "text" LIKE '____-__-__' THEN "muster"."date_at"("data", "path", "text")::pg_catalog.timestamp
  ELSE "muster"."timestamp_at"("data", "path", "text") END;

-- The kind of a value under a key whose column has the type and converts; a null type is that of a column which does not.
CREATE FUNCTION "muster"."kind_in"("value" JSONB, "type" TEXT) RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof("value") = 'string' AND CASE "type"
    WHEN 'numeric' THEN "muster"."declared_numeric"("value", "value" #>> '{}') IS NOT NULL
    WHEN 'boolean' THEN "muster"."declared_boolean"("value", "value" #>> '{}') IS NOT NULL
    WHEN 'date' THEN "muster"."kind_of"("value") <> 'date' AND "muster"."declared_date"("value", '$', "value" #>> '{}') IS NOT NULL
    WHEN 'timestamp' THEN "muster"."kind_of"("value") <> 'timestamp' AND "muster"."declared_timestamp"("value", '$', "value" #>> '{}') IS NOT NULL
    ELSE false END
  THEN 'as_declared' ELSE "muster"."kind_of"("value") END;

-- Texts that are timestamps now are counted again, so that columns which are texts because of them get their twins.
INSERT INTO "muster"."schema_resources" ("resource", "rebuild_asked_at")
SELECT DISTINCT "resource", now() FROM "muster"."schema_columns"
ON CONFLICT ("resource") DO UPDATE SET "rebuild_asked_at" = EXCLUDED."rebuild_asked_at";
