-- Runs of some lists that were requested for many companies, and the person who decided on a hold.
-- The lists are a table of their own: an older process would make a run of every list from a row of "run_requests".

-- CreateTable
CREATE TABLE "muster"."run_request_lists" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,

    CONSTRAINT "run_request_lists_pkey" PRIMARY KEY ("environment", "company_id", "resource")
);

-- AlterTable
ALTER TABLE "muster"."holds" ADD COLUMN "decided_by" TEXT,
ADD COLUMN "decision_reason" TEXT;

-- Earlier decisions are in the audit. A hold without a decision there keeps none.
UPDATE "muster"."holds" h SET "decided_by" = a."actor", "decision_reason" = a."details" ->> 'reason'
FROM "muster"."audit" a
WHERE a."action" IN ('hold.approve', 'hold.reject') AND a."details" ->> 'outcome' = 'done' AND a."details" ->> 'hold_id' = h."id"::text
  AND h."status" IN ('approved', 'rejected');
