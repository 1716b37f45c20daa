-- The schema log: which keys records have, and which column of schema warehouse each is.

CREATE SCHEMA IF NOT EXISTS "warehouse";

-- CreateTable
CREATE TABLE "muster"."schema_columns" (
    "id" BIGSERIAL NOT NULL,
    "resource" TEXT NOT NULL,
    "path" TEXT[],
    "name" TEXT,
    "type" TEXT,
    "position" INTEGER,
    "text_position" INTEGER,
    "kinds" JSONB NOT NULL DEFAULT '{}',
    "values" BIGINT NOT NULL DEFAULT 0,
    "nulls" BIGINT NOT NULL DEFAULT 0,
    "misfits" BIGINT NOT NULL DEFAULT 0,
    "environment" TEXT NOT NULL,
    "first_run_id" UUID,
    "first_seen_at" TIMESTAMPTZ(6) NOT NULL,
    "last_seen_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "schema_columns_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."schema_resources" (
    "resource" TEXT NOT NULL,
    "first_run_id" UUID,
    "rebuild_asked_at" TIMESTAMPTZ(6),
    "rebuilt_at" TIMESTAMPTZ(6),

    CONSTRAINT "schema_resources_pkey" PRIMARY KEY ("resource")
);

-- CreateTable
CREATE TABLE "muster"."schema_cursor" (
    "only" BOOLEAN NOT NULL DEFAULT true,
    "seq" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "schema_cursor_pkey" PRIMARY KEY ("only")
);

-- CreateTable
CREATE TABLE "muster"."schema_misfits" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "last_seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "schema_misfits_pkey" PRIMARY KEY ("environment","company_id","resource")
);
CREATE INDEX "schema_misfits_last_seen_at_idx" ON "muster"."schema_misfits"("last_seen_at");

-- AddForeignKey
ALTER TABLE "muster"."schema_misfits" ADD CONSTRAINT "schema_misfits_environment_company_id_fkey"
FOREIGN KEY ("environment", "company_id") REFERENCES "muster"."connections"("environment", "company_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What follows is beyond the schema language of Prisma.

CREATE UNIQUE INDEX "schema_columns_path" ON "muster"."schema_columns"("resource", "path");
CREATE UNIQUE INDEX "schema_columns_name" ON "muster"."schema_columns"("resource", "name") WHERE "name" IS NOT NULL;
CREATE UNIQUE INDEX "schema_columns_position" ON "muster"."schema_columns"("resource", "position") WHERE "position" IS NOT NULL;
CREATE INDEX "schema_columns_undecided" ON "muster"."schema_columns"("resource") WHERE "name" IS NULL;
ALTER TABLE "muster"."schema_columns" ADD CHECK (cardinality("path") IN (1, 2)),
  ADD CHECK ("type" IN ('text', 'boolean', 'numeric', 'date', 'timestamptz', 'jsonb')),
  ADD CHECK (("name" IS NULL) = ("type" IS NULL) AND ("name" IS NULL) = ("position" IS NULL));
ALTER TABLE "muster"."schema_cursor" ADD CHECK ("only");

-- What stands in the mirror already may have left the feed: it is counted where it stands, and the feed read from here on.
INSERT INTO "muster"."schema_cursor" ("seq") SELECT "next_seq" - 1 FROM "muster"."change_sequence";
INSERT INTO "muster"."schema_resources" ("resource", "rebuild_asked_at")
SELECT DISTINCT "resource", now() FROM "muster"."lists" WHERE "records" > 0;

-- Whether a text is a day or a moment that PostgreSQL takes, without an error where it is not. A moment says its time zone, so that it is the same one
-- for every reader. PostgreSQL 15 has no question for it, and expressions take ten times as long; there digits are spelled out, since under some
-- collations \d stands for more than ten. None of these functions is STRICT, which would keep PostgreSQL from putting it into the queries of a view.
DO $do$ BEGIN
  IF current_setting('server_version_num')::integer >= 160000 THEN
    CREATE FUNCTION "muster"."is_date"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT $1 LIKE '____-__-__' AND pg_input_is_valid($1, 'date') $$;
    CREATE FUNCTION "muster"."is_timestamptz"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT $1 LIKE '____-__-__T__:__%' AND ($1 LIKE '%Z' OR $1 LIKE '%+__:__' OR $1 LIKE '%-__:__') AND pg_input_is_valid($1, 'timestamptz') $$;
  ELSE
    CREATE FUNCTION "muster"."is_date"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT $1 LIKE '____-__-__' AND $1 ~ '^(?:(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)$' $$;
    CREATE FUNCTION "muster"."is_timestamptz"(TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT $1 LIKE '____-__-__T__:__%' AND
      $1 ~ '^(?:(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,9})?)?(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])$' $$;
  END IF;
END $do$;

-- The day or the moment at a path of a record, which is also given as a text; null where it is none. From PostgreSQL 17 on the text is read once and not
-- twice, to look and to take it.
DO $do$ BEGIN
  IF current_setting('server_version_num')::integer >= 170000 THEN
    CREATE FUNCTION "muster"."date_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS DATE LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN "text" LIKE '____-__-__' THEN JSON_VALUE("data", "path" RETURNING date NULL ON ERROR) END $$;
    CREATE FUNCTION "muster"."timestamptz_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS TIMESTAMPTZ LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN "text" LIKE '____-__-__T__:__%Z' OR "text" LIKE '____-__-__T__:__%+__:__' OR "text" LIKE '____-__-__T__:__%-__:__'
       THEN JSON_VALUE("data", "path" RETURNING timestamptz NULL ON ERROR) END $$;
  ELSE
    CREATE FUNCTION "muster"."date_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS DATE LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN "muster"."is_date"("text") THEN "text"::date END $$;
    CREATE FUNCTION "muster"."timestamptz_at"("data" JSONB, "path" JSONPATH, "text" TEXT) RETURNS TIMESTAMPTZ LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT CASE WHEN "muster"."is_timestamptz"("text") THEN "text"::timestamptz END $$;
  END IF;
END $do$;

-- What a value is: the name that JSON has for it, but that texts which are days or moments are told apart.
CREATE FUNCTION "muster"."kind_of"(JSONB) RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN jsonb_typeof($1) <> 'string' THEN jsonb_typeof($1)
     WHEN $1 #>> '{}' NOT LIKE '____-__-__%' THEN 'string' WHEN "muster"."is_date"($1 #>> '{}') THEN 'date'
     WHEN "muster"."is_timestamptz"($1 #>> '{}') THEN 'timestamptz' ELSE 'string' END $$;

-- What of a record stands in no column: keys that have none. `whole` are the keys all of whose values have one; `members` has each key whose objects
-- are flattened, with the keys inside that have a column (`keys`), and whether there is one for what is no object (`own`).
CREATE FUNCTION "muster"."rest_of"("value" JSONB, "whole" TEXT[], "members" JSONB) RETURNS JSONB LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_object_agg("key", "rest") FROM (
    SELECT m."key", CASE
      WHEN jsonb_typeof(m."value") = 'null' OR m."key" = ANY ("whole") THEN NULL
      WHEN NOT "members" ? m."key" THEN m."value"
      WHEN jsonb_typeof(m."value") <> 'object' THEN CASE WHEN ("members" -> m."key" -> 'own')::boolean THEN NULL ELSE m."value" END
      WHEN m."value" = '{}' THEN m."value"
      ELSE (SELECT jsonb_object_agg(n."key", n."value") FROM jsonb_each(m."value") n
            WHERE jsonb_typeof(n."value") <> 'null' AND NOT ("members" -> m."key" -> 'keys') ? n."key") END AS "rest"
    FROM jsonb_each("value") m) each WHERE "rest" IS NOT NULL
$$;

CREATE VIEW "warehouse"."columns" AS
SELECT "resource", "name" AS "column", "path", "type", "position", "text_position" IS NOT NULL AS "has_text", "first_seen_at", "last_seen_at",
       "values", "nulls", "misfits"
FROM "muster"."schema_columns" WHERE "position" IS NOT NULL;
