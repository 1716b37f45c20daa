-- AlterTable
ALTER TABLE "muster"."page_contents" DROP COLUMN "digest";
