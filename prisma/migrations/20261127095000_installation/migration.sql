-- Which database the tokens are refreshed in. Of a copy, or of a backup that was restored elsewhere, the server or the database's number is another one: then nothing is
-- asked of the service until a person says which of the two this is.
CREATE TABLE "muster"."installation" (
    "only" BOOLEAN NOT NULL DEFAULT TRUE CHECK ("only"),
    "system_identifier" TEXT,
    "database_oid" BIGINT,
    "name" TEXT,
    "other_name" TEXT,
    "is_detached" BOOLEAN NOT NULL DEFAULT FALSE,

    CONSTRAINT "installation_pkey" PRIMARY KEY ("only")
);
INSERT INTO "muster"."installation" DEFAULT VALUES;
