-- Workers have no port for metrics: for how long each was held up at most stands in its row.
ALTER TABLE "muster"."workers" ADD COLUMN "event_loop_delay" DOUBLE PRECISION NOT NULL DEFAULT 0;
