-- Issues by cause, workers that say that they live, and what both are read from.

-- CreateTable
CREATE TABLE "muster"."issues" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "seq" BIGSERIAL NOT NULL,
    "cause" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "resource" TEXT,
    "severity" TEXT NOT NULL,
    "companies" INTEGER NOT NULL,
    "sample" TEXT[],
    "status" TEXT NOT NULL DEFAULT 'ongoing',
    "first_seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resolved_at" TIMESTAMPTZ(6),
    "told" INTEGER NOT NULL,

    CONSTRAINT "issues_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "issues_seq_key" ON "muster"."issues"("seq");
CREATE INDEX "issues_environment_seq_idx" ON "muster"."issues"("environment", "seq");
CREATE INDEX "issues_environment_status_seq_idx" ON "muster"."issues"("environment", "status", "seq");
CREATE INDEX "issues_status_seq_idx" ON "muster"."issues"("status", "seq");

-- CreateTable
CREATE TABLE "muster"."workers" (
    "name" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "workers_pkey" PRIMARY KEY ("name")
);

-- AlterTable
ALTER TABLE "muster"."lists" ADD COLUMN "unverified_since" TIMESTAMPTZ(6);
ALTER TABLE "muster"."notifications" ALTER COLUMN "company_id" DROP NOT NULL;

-- What follows is beyond the schema language of Prisma.

-- One ongoing issue a cause: two sweeps at once find the same.
CREATE UNIQUE INDEX "issues_one_ongoing" ON "muster"."issues"("cause", "environment", "resource") NULLS NOT DISTINCT WHERE "status" = 'ongoing';

-- Whether an issue comes back soon.
CREATE INDEX "issues_resolved" ON "muster"."issues"("resolved_at") WHERE "status" = 'resolved';

-- The newest walk of a list that ended by itself is looked up, however many there are.
CREATE INDEX "walks_ended" ON "muster"."walks"("environment", "company_id", "resource", "finished_at")
WHERE "status" IN ('succeeded', 'failed') AND "finished_at" IS NOT NULL;

-- The runs of one night.
CREATE INDEX "runs_nightly" ON "muster"."runs"("created_at") WHERE "trigger" = 'nightly';

-- The walks before this migration wrote no such time: their lists have been unverified since the newest of them at least.
UPDATE "muster"."lists" l SET "unverified_since" = w."finished_at"
FROM "muster"."walks" w
WHERE w."run_id" = l."last_run_id" AND w."environment" = l."environment" AND w."company_id" = l."company_id" AND w."resource" = l."resource"
  AND w."status" = 'succeeded' AND NOT w."verified";
