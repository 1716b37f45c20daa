-- An answer that no worker survives would end one after the other: how often in a row a run's claim lapsed with the same number of pages committed.
ALTER TABLE "muster"."runs"
    ADD COLUMN "deaths" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "pages_at_death" INTEGER;
