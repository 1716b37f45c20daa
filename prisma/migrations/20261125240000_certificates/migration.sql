-- What is said of each verified walk. A worker of the version before ends its walks without.
CREATE TABLE "muster"."certificates" (
    "id" BIGINT NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "verified_at" TIMESTAMPTZ(6) NOT NULL,
    "facts" JSONB,
    "jws" TEXT,

    CONSTRAINT "certificates_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "muster"."signing_keys" (
    "kid" TEXT NOT NULL,
    "x" TEXT NOT NULL,
    "first_used_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "signing_keys_pkey" PRIMARY KEY ("kid")
);

-- CreateIndex
CREATE INDEX "certificates_environment_company_id_resource_id_idx" ON "muster"."certificates"("environment", "company_id", "resource", "id");

-- CreateIndex
CREATE INDEX "certificates_verified_at_idx" ON "muster"."certificates"("verified_at");

-- What follows is beyond the schema language of Prisma.

-- Once it is signed, nothing is kept beside what was signed.
ALTER TABLE "muster"."certificates" ADD CONSTRAINT "certificates_facts_or_jws" CHECK (num_nonnulls("facts", "jws") = 1);

-- Newest first within a filter. Of "id" itself the planner would rather look through all rows in its order, for what a filter may hardly have.
CREATE INDEX "certificates_by_environment" ON "muster"."certificates"("environment", (-"id"));
CREATE INDEX "certificates_by_resource" ON "muster"."certificates"("environment", "resource", (-"id"));

-- Those that wait are few, and looked for every two seconds.
CREATE INDEX "certificates_unsigned" ON "muster"."certificates"("id") WHERE "jws" IS NULL;
