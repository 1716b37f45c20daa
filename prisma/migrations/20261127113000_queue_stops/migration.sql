-- When a queue was last found paused or without its own data, and was set going again.
CREATE TABLE "muster"."queue_stops" (
    "queue" TEXT NOT NULL,
    "found_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "queue_stops_pkey" PRIMARY KEY ("queue")
);
