-- What all workers together may ask of an environment's API, and what each of them does: the request budget.

-- CreateTable
CREATE TABLE "muster"."request_budgets" (
    "environment" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "rate" DOUBLE PRECISION,
    "fallback" DOUBLE PRECISION,
    "seeking" BOOLEAN NOT NULL DEFAULT false,
    "progress" DOUBLE PRECISION NOT NULL DEFAULT 0,
    "announced" DOUBLE PRECISION,
    "at_once" INTEGER,
    "next_slot_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resumes_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "request_budgets_pkey" PRIMARY KEY ("environment")
);

-- CreateTable
CREATE TABLE "muster"."request_shares" (
    "environment" TEXT NOT NULL,
    "worker" TEXT NOT NULL,
    "wanted" INTEGER NOT NULL,
    "held" INTEGER NOT NULL,
    "waiting" INTEGER NOT NULL,
    "used" INTEGER NOT NULL,
    "refused" INTEGER NOT NULL,
    "seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "request_shares_pkey" PRIMARY KEY ("environment","worker")
);

-- Both are written many times a second: room in a page for the versions of a row.
ALTER TABLE "muster"."request_budgets" SET (fillfactor = 20);
ALTER TABLE "muster"."request_shares" SET (fillfactor = 20);
