-- A moment is of the years 1 to 9999, once it is rounded to microseconds and moved to UTC: what is beyond them (9999-12-31T23:59:59.9999999Z, the last
-- moment of .NET, is the year 10000 by then) is read by few programs, and some fail on it. Only texts of the first and the last day can be beyond, as a time
-- zone moves a moment by less than 16 hours; the others need no second look. A text with a b may be of the years before Christ, and is none.
-- As before, PostgreSQL 15 has no question for it; there the expression now takes what later versions take: 24:00, a second 60, 15:59 hours, more digits.
DO $do$ BEGIN
  IF current_setting('server_version_num')::integer >= 160000 THEN
    CREATE OR REPLACE FUNCTION "muster"."is_date"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT $1 LIKE '____-__-__' AND ascii($1) BETWEEN 48 AND 57 AND pg_input_is_valid($1, 'date') $$;
    CREATE OR REPLACE FUNCTION "muster"."is_timestamptz"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN ($1 LIKE '____-__-__T__:__%Z' OR $1 LIKE '____-__-__T__:__%+__:__' OR $1 LIKE '____-__-__T__:__%-__:__')
         AND ascii($1) BETWEEN 48 AND 57 AND $1 NOT LIKE '%B%' AND $1 NOT LIKE '%b%' AND pg_input_is_valid($1, 'timestamptz')
       THEN CASE WHEN $1 LIKE '9999-12-31%' OR $1 LIKE '0001-01-01%'
         THEN $1::pg_catalog.timestamptz >= '0001-01-01 00:00:00+00'::pg_catalog.timestamptz
          AND $1::pg_catalog.timestamptz < '10000-01-01 00:00:00+00'::pg_catalog.timestamptz
         ELSE true END
       ELSE false END $$;
  ELSE
    CREATE OR REPLACE FUNCTION "muster"."is_timestamptz"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN $1 LIKE '____-__-__T__:__%' AND
      $1 ~ '^(?:(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)T(?:(?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9](?:[.][0-9]{1,30})?|60))?|24:00(?::00(?:[.]0{1,30})?)?)(?:Z|[+-](?:0[0-9]|1[0-5]):[0-5][0-9])$'
       THEN CASE WHEN $1 LIKE '9999-12-31%' OR $1 LIKE '0001-01-01%'
         THEN $1::pg_catalog.timestamptz >= '0001-01-01 00:00:00+00'::pg_catalog.timestamptz
          AND $1::pg_catalog.timestamptz < '10000-01-01 00:00:00+00'::pg_catalog.timestamptz
         ELSE true END
       ELSE false END $$;
  END IF;
END $do$;

DO $do$ BEGIN
  IF current_setting('server_version_num')::integer >= 170000 THEN
    CREATE OR REPLACE FUNCTION "muster"."date_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS DATE LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN "text" LIKE '____-__-__' AND ascii("text") BETWEEN 48 AND 57 THEN JSON_VALUE("data", "path" RETURNING date NULL ON ERROR) END $$;
    CREATE OR REPLACE FUNCTION "muster"."timestamptz_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS TIMESTAMPTZ LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN ("text" LIKE '____-__-__T__:__%Z' OR "text" LIKE '____-__-__T__:__%+__:__' OR "text" LIKE '____-__-__T__:__%-__:__')
         AND ascii("text") BETWEEN 48 AND 57 AND "text" NOT LIKE '%B%' AND "text" NOT LIKE '%b%'
         AND ("text" NOT LIKE '9999-12-31%' AND "text" NOT LIKE '0001-01-01%'
           OR JSON_VALUE("data", "path" RETURNING timestamptz NULL ON ERROR) >= '0001-01-01 00:00:00+00'::pg_catalog.timestamptz
          AND JSON_VALUE("data", "path" RETURNING timestamptz NULL ON ERROR) < '10000-01-01 00:00:00+00'::pg_catalog.timestamptz)
       THEN JSON_VALUE("data", "path" RETURNING timestamptz NULL ON ERROR) END $$;
  END IF;
END $do$;

-- What a value is. Texts that are written as days or moments and are beyond the years 1 to 9999 have kinds of their own: one that says "for ever" must not
-- make texts of all days and moments of its column. So have 0000-00-00 and 9999-99-99.
CREATE OR REPLACE FUNCTION "muster"."kind_of"(JSONB) RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN jsonb_typeof($1) <> 'string' THEN jsonb_typeof($1)
     WHEN $1 #>> '{}' LIKE '____-__-__%' AND "muster"."is_date"($1 #>> '{}') THEN 'date'
     WHEN $1 #>> '{}' LIKE '____-__-__%' AND "muster"."is_timestamptz"($1 #>> '{}') THEN 'timestamptz'
     WHEN $1 #>> '{}' LIKE '0000-__-__%' OR $1 #>> '{}' LIKE '0001-01-01T%' OR $1 #>> '{}' LIKE '9999-__-__%'
       OR $1 #>> '{}' LIKE '_____-__-__%' OR $1 #>> '{}' LIKE '_______-__-__%'
     THEN CASE
       WHEN $1 #>> '{}' ~ '^(0000|0001|9999|[+-]?[0-9]{5,6})-[0-9]{2}-[0-9]{2}$' THEN 'date_beyond'
       WHEN $1 #>> '{}' ~ '^(0000|0001|9999|[+-]?[0-9]{5,6})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})$' THEN 'timestamptz_beyond'
       ELSE 'string' END
     ELSE 'string' END $$;

-- Values that were moments until now and are none any more get their text columns once they are counted again.
INSERT INTO "muster"."schema_resources" ("resource", "rebuild_asked_at")
SELECT DISTINCT "resource", now() FROM "muster"."schema_columns" WHERE "type" = 'timestamptz'
ON CONFLICT ("resource") DO UPDATE SET "rebuild_asked_at" = EXCLUDED."rebuild_asked_at";
