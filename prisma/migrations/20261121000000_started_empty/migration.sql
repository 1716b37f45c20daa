-- AlterTable
ALTER TABLE "muster"."walks" ADD COLUMN     "started_empty" BOOLEAN NOT NULL DEFAULT false;
