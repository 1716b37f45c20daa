-- Which records a page held stands in a row of its own: when the text of one changes, the next night's page shares the row.
-- CreateTable
CREATE TABLE "muster"."page_keys" (
    "id" BIGSERIAL NOT NULL,
    "environment" TEXT NOT NULL,
    "company_id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "ids" TEXT[],
    "keys" BYTEA NOT NULL,

    CONSTRAINT "page_keys_pkey" PRIMARY KEY ("id")
);

-- What follows is beyond the schema language of Prisma.

-- A page without its ids would make every row look gone.
ALTER TABLE "muster"."page_keys" ADD CONSTRAINT "page_keys_has_ids" CHECK ("ids" IS NOT NULL);

-- Uncompressed, as they were in page_contents.
ALTER TABLE "muster"."page_keys"
  ALTER COLUMN "ids" SET STORAGE EXTERNAL,
  ALTER COLUMN "keys" SET STORAGE EXTERNAL;

-- No page may be added between here and the new column.
LOCK TABLE "muster"."page_contents" IN ACCESS EXCLUSIVE MODE;
INSERT INTO "muster"."page_keys" SELECT "id", "environment", "company_id", "resource", "ids", "keys" FROM "muster"."page_contents";
SELECT setval('muster.page_keys_id_seq', nextval('muster.page_contents_id_seq'));

-- AlterTable
ALTER TABLE "muster"."page_contents" ADD COLUMN "keys_id" BIGINT;
UPDATE "muster"."page_contents" SET "keys_id" = "id";
ALTER TABLE "muster"."page_contents" ALTER COLUMN "keys_id" SET NOT NULL, DROP COLUMN "ids", DROP COLUMN "keys";

-- CreateIndex
CREATE INDEX "page_keys_environment_company_id_resource_idx" ON "muster"."page_keys"("environment", "company_id", "resource");

-- CreateIndex
CREATE INDEX "page_contents_keys_id_idx" ON "muster"."page_contents"("keys_id");

-- AddForeignKey
ALTER TABLE "muster"."page_contents" ADD CONSTRAINT "page_contents_keys_id_fkey" FOREIGN KEY ("keys_id") REFERENCES "muster"."page_keys"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
