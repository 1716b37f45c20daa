-- Companies for which a run was asked for together with many others, and is not made yet.
CREATE TABLE "muster"."run_requests" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,

    CONSTRAINT "run_requests_pkey" PRIMARY KEY ("environment", "company_id")
);
