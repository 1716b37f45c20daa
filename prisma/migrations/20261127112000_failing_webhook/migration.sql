-- Since when the webhook has taken nothing, and why not; null after a delivery that it has taken.
CREATE TABLE "muster"."webhook" (
    "only" BOOLEAN NOT NULL DEFAULT TRUE CHECK ("only"),
    "failing_since" TIMESTAMPTZ(6),
    "last_error" JSONB,

    CONSTRAINT "webhook_pkey" PRIMARY KEY ("only")
);
INSERT INTO "muster"."webhook" DEFAULT VALUES;
