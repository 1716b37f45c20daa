-- Exports after each night: which are to be made, and what became of them. They go with their night.

-- CreateTable
CREATE TABLE "muster"."night_exports" (
    "night" DATE NOT NULL,
    "environment" TEXT NOT NULL,
    "resource" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "next_attempt_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_error" JSONB,
    "finished_at" TIMESTAMPTZ(6),
    "output" TEXT,
    "rows" BIGINT,
    "seq" BIGINT,

    CONSTRAINT "night_exports_pkey" PRIMARY KEY ("night","environment","resource")
);

-- CreateIndex
CREATE INDEX "night_exports_environment_resource_night_idx" ON "muster"."night_exports"("environment", "resource", "night");

-- AddForeignKey
ALTER TABLE "muster"."night_exports" ADD CONSTRAINT "night_exports_night_environment_fkey" FOREIGN KEY ("night", "environment") REFERENCES "muster"."nights"("night", "environment") ON DELETE CASCADE ON UPDATE CASCADE;
