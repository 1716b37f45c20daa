-- Whether the refresh tokens of this database are those that the service knows. A backup that was restored in place, and a second installation, show by nothing but refusals.
CREATE TABLE "muster"."refresh_breakers" (
    "environment" TEXT NOT NULL,
    "is_trusted" BOOLEAN NOT NULL DEFAULT FALSE,
    "grants" INTEGER NOT NULL DEFAULT 0,
    "grants_needed" INTEGER NOT NULL DEFAULT 1,
    "server_started_at" TIMESTAMPTZ(6),
    "tokens_table" BIGINT,
    "watched_since" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "refused_at" TIMESTAMPTZ(6)[] DEFAULT '{}',
    "opened_at" TIMESTAMPTZ(6),
    "next_trial_at" TIMESTAMPTZ(6),
    "trial_company_id" UUID,
    "trial_epoch" BIGINT,
    "trial_until" TIMESTAMPTZ(6),

    CONSTRAINT "refresh_breakers_pkey" PRIMARY KEY ("environment")
);
INSERT INTO "muster"."refresh_breakers" ("environment") VALUES ('production'), ('test');
