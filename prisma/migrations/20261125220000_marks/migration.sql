-- Who was forgotten, as keyed hashes that say so to whoever has the key and comes with the id, and to nobody else.
CREATE TABLE "muster"."marks" (
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "mark" BYTEA NOT NULL,
    "member" TEXT NOT NULL,
    "person" UUID NOT NULL,
    "made_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "marks_pkey" PRIMARY KEY ("environment","company_id","resource","mark")
);

-- CreateTable
CREATE TABLE "muster"."mark_key" (
    "only" BOOLEAN NOT NULL DEFAULT true,
    "sealed" TEXT NOT NULL,

    CONSTRAINT "mark_key_pkey" PRIMARY KEY ("only")
);

-- AlterTable
ALTER TABLE "muster"."lists" ADD COLUMN "has_marks" BOOLEAN NOT NULL DEFAULT false;

-- The last entries that the feed has of somebody who was forgotten, by which readers learn that the record is gone.
-- CreateTable
CREATE TABLE "muster"."farewells" (
    "batch_id" BIGINT NOT NULL,
    "told_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "farewells_pkey" PRIMARY KEY ("batch_id")
);

-- CreateIndex
CREATE INDEX "farewells_told_at_idx" ON "muster"."farewells"("told_at");

-- AddForeignKey
ALTER TABLE "muster"."farewells" ADD CONSTRAINT "farewells_batch_id_fkey" FOREIGN KEY ("batch_id") REFERENCES "muster"."change_batches"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What follows is beyond the schema language of Prisma.

ALTER TABLE "muster"."mark_key" ADD CONSTRAINT "mark_key_only" CHECK ("only");
