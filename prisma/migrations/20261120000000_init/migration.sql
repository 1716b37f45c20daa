-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "mirror";

-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "muster";

-- CreateTable
CREATE TABLE "mirror"."companies" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "name" TEXT,
    "data" JSONB,
    "verified_at" JSONB NOT NULL DEFAULT '{}',
    "first_seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(6),

    CONSTRAINT "companies_pkey" PRIMARY KEY ("environment","company_id")
);

-- CreateTable
CREATE TABLE "mirror"."employees" (
    "environment" TEXT COLLATE "C" NOT NULL,
    "company_id" UUID NOT NULL,
    "id" TEXT COLLATE "C" NOT NULL,
    "data" JSONB NOT NULL,
    "first_seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(6),

    CONSTRAINT "employees_pkey" PRIMARY KEY ("environment","company_id","id")
);

-- CreateTable
CREATE TABLE "mirror"."departments" (
    "environment" TEXT COLLATE "C" NOT NULL,
    "company_id" UUID NOT NULL,
    "id" TEXT COLLATE "C" NOT NULL,
    "data" JSONB NOT NULL,
    "first_seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(6),

    CONSTRAINT "departments_pkey" PRIMARY KEY ("environment","company_id","id")
);

-- CreateTable
CREATE TABLE "muster"."change_batches" (
    "id" BIGSERIAL NOT NULL,
    "size" INTEGER NOT NULL,
    "first_seq" BIGINT,

    CONSTRAINT "change_batches_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."changes" (
    "batch_id" BIGINT NOT NULL,
    "position" INTEGER NOT NULL,
    "resource" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "record_id" TEXT NOT NULL,
    "op" TEXT NOT NULL,
    "data" JSONB,
    "changed_at" TIMESTAMPTZ(6) NOT NULL,
    "run_id" UUID,

    CONSTRAINT "changes_pkey" PRIMARY KEY ("batch_id","position")
);

-- CreateTable
CREATE TABLE "muster"."connections" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "paused" BOOLEAN NOT NULL DEFAULT false,
    "reauthorization_reason" TEXT,
    "status" TEXT NOT NULL GENERATED ALWAYS AS (
        CASE WHEN "reauthorization_reason" IS NOT NULL THEN 'reauthorization_required' WHEN "paused" THEN 'paused' ELSE 'active' END
    ) STORED,
    "status_changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "next_sync_at" TIMESTAMPTZ(6),
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "connections_pkey" PRIMARY KEY ("environment","company_id")
);

-- CreateTable
CREATE TABLE "muster"."tokens" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "access_token" TEXT,
    "refresh_token" TEXT NOT NULL,
    "fence" BIGINT NOT NULL DEFAULT 1,
    "expires_at" TIMESTAMPTZ(6),
    "refreshed_at" TIMESTAMPTZ(6),
    "refresh_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "lease_owner" TEXT,
    "lease_until" TIMESTAMPTZ(6),
    "attempt_started_at" TIMESTAMPTZ(6),
    "ambiguous_attempts" INTEGER NOT NULL DEFAULT 0,
    "transient_failures" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "tokens_pkey" PRIMARY KEY ("environment","company_id")
);

-- CreateTable
CREATE TABLE "muster"."quarantined_tokens" (
    "id" BIGSERIAL NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "refresh_token" TEXT NOT NULL,
    "received_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "quarantined_tokens_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."runs" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "seq" BIGSERIAL NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "trigger" TEXT NOT NULL,
    "mode" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'queued',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "start_after" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "epoch" BIGINT NOT NULL DEFAULT 0,
    "holder" TEXT,
    "heartbeat_at" TIMESTAMPTZ(6),
    "cancel_requested" BOOLEAN NOT NULL DEFAULT false,
    "error" JSONB,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(6),
    "finished_at" TIMESTAMPTZ(6),

    CONSTRAINT "runs_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."walks" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "run_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'queued',
    "epoch" BIGINT,
    "fingerprint" TEXT,
    "checkpoint" JSONB,
    "checkpoint_at" TIMESTAMPTZ(6),
    "pass" INTEGER NOT NULL DEFAULT 1,
    "pass_started_at" TIMESTAMPTZ(6),
    "pages" INTEGER NOT NULL DEFAULT 0,
    "received" INTEGER NOT NULL DEFAULT 0,
    "inserted" INTEGER NOT NULL DEFAULT 0,
    "updated" INTEGER NOT NULL DEFAULT 0,
    "unchanged" INTEGER NOT NULL DEFAULT 0,
    "deleted" INTEGER NOT NULL DEFAULT 0,
    "rejected" INTEGER NOT NULL DEFAULT 0,
    "duplicates" INTEGER NOT NULL DEFAULT 0,
    "total_records" INTEGER,
    "resumed" BOOLEAN NOT NULL DEFAULT false,
    "verified" BOOLEAN NOT NULL DEFAULT false,
    "reusable" BOOLEAN NOT NULL DEFAULT false,
    "keys_digest" TEXT,
    "reference_walk_id" UUID,
    "proof" TEXT,
    "unverified_reason" TEXT,
    "error" JSONB,
    "started_at" TIMESTAMPTZ(6),
    "finished_at" TIMESTAMPTZ(6),

    CONSTRAINT "walks_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."walk_pages" (
    "walk_id" UUID NOT NULL,
    "pass" INTEGER NOT NULL,
    "page" INTEGER NOT NULL,
    "content_id" BIGINT NOT NULL,
    "next_token" TEXT,

    CONSTRAINT "walk_pages_pkey" PRIMARY KEY ("walk_id","pass","page")
);

-- CreateTable
CREATE TABLE "muster"."page_contents" (
    "id" BIGSERIAL NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "digest" BYTEA NOT NULL,
    "ids" TEXT[],
    "keys" BYTEA NOT NULL,
    "texts" BYTEA NOT NULL,

    CONSTRAINT "page_contents_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."rejected_records" (
    "id" BIGSERIAL NOT NULL,
    "walk_id" UUID NOT NULL,
    "pass" INTEGER NOT NULL,
    "page" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "reason" TEXT NOT NULL,
    "text" TEXT NOT NULL,

    CONSTRAINT "rejected_records_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."lists" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "epoch" BIGINT NOT NULL DEFAULT 0,
    "id_field" TEXT,
    "last_run_id" UUID,
    "last_verified_at" TIMESTAMPTZ(6),
    "verified_walk_id" UUID,
    "records" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "lists_pkey" PRIMARY KEY ("environment","company_id","resource")
);

-- CreateTable
CREATE TABLE "muster"."holds" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "seq" BIGSERIAL NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "run_id" UUID NOT NULL,
    "walk_id" UUID NOT NULL,
    "count" INTEGER NOT NULL,
    "living" INTEGER NOT NULL,
    "sample" TEXT[],
    "status" TEXT NOT NULL DEFAULT 'open',
    "opened_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "closed_at" TIMESTAMPTZ(6),

    CONSTRAINT "holds_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."connect_links" (
    "token_hash" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID,
    "state_hash" TEXT,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(6) NOT NULL,
    "used_at" TIMESTAMPTZ(6),
    "completed_at" TIMESTAMPTZ(6),

    CONSTRAINT "connect_links_pkey" PRIMARY KEY ("token_hash")
);

-- CreateTable
CREATE TABLE "muster"."audit" (
    "id" BIGSERIAL NOT NULL,
    "at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "actor" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "environment" TEXT,
    "company_id" UUID,
    "details" JSONB NOT NULL DEFAULT '{}',

    CONSTRAINT "audit_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "change_batches_first_seq_key" ON "muster"."change_batches"("first_seq");

-- CreateIndex
CREATE UNIQUE INDEX "connections_id_key" ON "muster"."connections"("id");

-- CreateIndex
CREATE INDEX "connections_next_sync_at_idx" ON "muster"."connections"("next_sync_at");

-- CreateIndex
CREATE INDEX "tokens_refresh_at_idx" ON "muster"."tokens"("refresh_at");

-- CreateIndex
CREATE UNIQUE INDEX "runs_seq_key" ON "muster"."runs"("seq");

-- CreateIndex
CREATE INDEX "runs_environment_company_id_seq_idx" ON "muster"."runs"("environment", "company_id", "seq");

-- CreateIndex
CREATE INDEX "runs_status_seq_idx" ON "muster"."runs"("status", "seq");

-- CreateIndex
CREATE INDEX "walks_environment_company_id_resource_idx" ON "muster"."walks"("environment", "company_id", "resource");

-- CreateIndex
CREATE UNIQUE INDEX "walks_run_id_position_key" ON "muster"."walks"("run_id", "position");

-- CreateIndex
CREATE INDEX "walk_pages_content_id_idx" ON "muster"."walk_pages"("content_id");

-- CreateIndex
CREATE INDEX "page_contents_environment_company_id_resource_idx" ON "muster"."page_contents"("environment", "company_id", "resource");

-- CreateIndex
CREATE INDEX "rejected_records_walk_id_idx" ON "muster"."rejected_records"("walk_id");

-- CreateIndex
CREATE UNIQUE INDEX "holds_seq_key" ON "muster"."holds"("seq");

-- CreateIndex
CREATE INDEX "holds_environment_company_id_resource_idx" ON "muster"."holds"("environment", "company_id", "resource");

-- CreateIndex
CREATE UNIQUE INDEX "connect_links_state_hash_key" ON "muster"."connect_links"("state_hash");

-- CreateIndex
CREATE INDEX "audit_environment_company_id_idx" ON "muster"."audit"("environment", "company_id");

-- AddForeignKey
ALTER TABLE "muster"."changes" ADD CONSTRAINT "changes_batch_id_fkey" FOREIGN KEY ("batch_id") REFERENCES "muster"."change_batches"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "muster"."tokens" ADD CONSTRAINT "tokens_environment_company_id_fkey" FOREIGN KEY ("environment", "company_id") REFERENCES "muster"."connections"("environment", "company_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "muster"."walks" ADD CONSTRAINT "walks_run_id_fkey" FOREIGN KEY ("run_id") REFERENCES "muster"."runs"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "muster"."walk_pages" ADD CONSTRAINT "walk_pages_walk_id_fkey" FOREIGN KEY ("walk_id") REFERENCES "muster"."walks"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "muster"."walk_pages" ADD CONSTRAINT "walk_pages_content_id_fkey" FOREIGN KEY ("content_id") REFERENCES "muster"."page_contents"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "muster"."rejected_records" ADD CONSTRAINT "rejected_records_walk_id_fkey" FOREIGN KEY ("walk_id") REFERENCES "muster"."walks"("id") ON DELETE CASCADE ON UPDATE CASCADE;



-- What follows is beyond the schema language of Prisma.

-- A content without its ids would make every row look gone.
ALTER TABLE "muster"."page_contents" ADD CONSTRAINT "page_contents_has_ids" CHECK ("ids" IS NOT NULL);

-- At most one run of a company is queued or running.
CREATE UNIQUE INDEX "runs_one_active" ON "muster"."runs"("environment", "company_id") WHERE "status" IN ('queued', 'running');

-- The sequencer looks for batches without a number, and there are never many.
CREATE INDEX "change_batches_unstamped" ON "muster"."change_batches"("id") WHERE "first_seq" IS NULL;

-- One open hold a list: a later verified walk replaces it.
CREATE UNIQUE INDEX "holds_one_open" ON "muster"."holds"("environment", "company_id", "resource") WHERE "status" = 'open';

-- Living rows first: what the warehouse and the reconciliation ask for.
CREATE INDEX "employees_deleted" ON "mirror"."employees"("environment", "company_id") WHERE "deleted_at" IS NOT NULL;
CREATE INDEX "departments_deleted" ON "mirror"."departments"("environment", "company_id") WHERE "deleted_at" IS NOT NULL;

-- The change feed as the warehouse reads it. Rows appear once their batch is stamped, in commit order, and never move.
CREATE VIEW "mirror"."changes" AS
SELECT b."first_seq" + c."position" AS "seq", c."resource", c."environment", c."company_id", c."record_id" AS "id",
       c."op", c."data", c."changed_at", c."run_id"
FROM "muster"."change_batches" b
JOIN "muster"."changes" c ON c."batch_id" = b."id"
WHERE b."first_seq" IS NOT NULL;

-- The next number of the change feed; one row, locked by the sequencer. It outlives the rows that retention removes.
CREATE TABLE "muster"."change_sequence" (
    "only" BOOLEAN NOT NULL DEFAULT TRUE CHECK ("only"),
    "next_seq" BIGINT NOT NULL DEFAULT 1,

    CONSTRAINT "change_sequence_pkey" PRIMARY KEY ("only")
);
INSERT INTO "muster"."change_sequence" DEFAULT VALUES;
