-- What each process has counted of its work since it started, for GET /metrics; the row "total" has the counts of processes that are gone.
-- An older process counts nothing, and needs to know nothing of it.

-- CreateTable
CREATE TABLE "muster"."work_counts" (
    "process" TEXT NOT NULL,
    "metrics" JSONB NOT NULL,
    "counted_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "work_counts_pkey" PRIMARY KEY ("process")
);
