-- ETags are checked: for how many walks in a row pages of the list were confirmed by them, when all of it was read last, and since when the list
-- is known to give one tag to two texts.
ALTER TABLE "muster"."lists" ADD COLUMN "etag_walks" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "muster"."lists" ADD COLUMN "read_whole_at" TIMESTAMPTZ(6);
ALTER TABLE "muster"."lists" ADD COLUMN "etags_false_since" TIMESTAMPTZ(6);
