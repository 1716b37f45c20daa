-- AlterTable
ALTER TABLE "muster"."lists" ADD COLUMN     "unstable_since" TIMESTAMPTZ(6);
