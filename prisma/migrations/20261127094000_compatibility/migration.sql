-- The migration that a process has to know at least. One beside which older processes cannot go on says so at its end:
-- UPDATE "muster"."compatibility" SET "needs" = '<its own name>';
CREATE TABLE "muster"."compatibility" (
    "only" BOOLEAN NOT NULL DEFAULT TRUE CHECK ("only"),
    "needs" TEXT NOT NULL,

    CONSTRAINT "compatibility_pkey" PRIMARY KEY ("only")
);
INSERT INTO "muster"."compatibility" ("needs") VALUES ('20261120000000_init');
