-- CreateTable
CREATE TABLE "muster"."notifications" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "seq" BIGSERIAL NOT NULL,
    "type" TEXT NOT NULL,
    "change" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "occurred_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "details" JSONB NOT NULL DEFAULT '{}',
    "status" TEXT NOT NULL DEFAULT 'pending',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "next_attempt_at" TIMESTAMPTZ(6) DEFAULT CURRENT_TIMESTAMP,
    "delivered_at" TIMESTAMPTZ(6),
    "last_error" JSONB,

    CONSTRAINT "notifications_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "notifications_seq_key" ON "muster"."notifications"("seq");

-- CreateIndex
CREATE UNIQUE INDEX "notifications_change_key" ON "muster"."notifications"("change");

-- CreateIndex
CREATE INDEX "notifications_environment_company_id_seq_idx" ON "muster"."notifications"("environment", "company_id", "seq");

-- CreateIndex
CREATE INDEX "notifications_occurred_at_idx" ON "muster"."notifications"("occurred_at");



-- What follows is beyond the schema language of Prisma.

-- What is to be delivered: looked for every second, and there is rarely any.
CREATE INDEX "notifications_pending" ON "muster"."notifications"("next_attempt_at") WHERE "status" = 'pending';
