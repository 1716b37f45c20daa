-- When each sweep last ended, in whichever worker: where one is late, the heartbeat stops.
CREATE TABLE "muster"."sweeps" (
    "name" TEXT NOT NULL,
    "finished_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "sweeps_pkey" PRIMARY KEY ("name")
);
-- Each is updated again and again: room in its page keeps that from growing.
ALTER TABLE "muster"."sweeps" SET (fillfactor = 10);

-- One worker sends the heartbeat at a time: the one that moves `taken_at`.
INSERT INTO "muster"."locks" ("name", "taken_at") VALUES ('heartbeat', 'epoch');
