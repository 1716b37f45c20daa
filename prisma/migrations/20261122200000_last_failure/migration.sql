-- AlterTable
ALTER TABLE "muster"."tokens" ADD COLUMN     "last_failure" TEXT;
