-- Quiet hours: of companies that have their own, and the time until which a run or a refresh waits for their end.
-- An older process keeps to them as far as they are written into "start_after" and "refresh_at", which it reads.

-- AlterTable
ALTER TABLE "muster"."connections" ADD COLUMN "quiet_hours" TEXT;

-- AlterTable
ALTER TABLE "muster"."runs" ADD COLUMN "quiet_until" TIMESTAMPTZ(6);

-- AlterTable
ALTER TABLE "muster"."tokens" ADD COLUMN "quiet_until" TIMESTAMPTZ(6);
