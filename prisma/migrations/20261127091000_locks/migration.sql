-- Work that one process does at a time locks its row here. Advisory locks are everybody's: any role that may connect could take them, and stop that work in silence.
CREATE TABLE "muster"."locks" (
    "name" TEXT NOT NULL,
    "taken_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "locks_pkey" PRIMARY KEY ("name")
);
-- Each is updated every few seconds: room in its page keeps that from growing.
ALTER TABLE "muster"."locks" SET (fillfactor = 10);
INSERT INTO "muster"."locks" ("name") VALUES ('issues'), ('certificates'), ('mirror_tables'), ('typed_views');
