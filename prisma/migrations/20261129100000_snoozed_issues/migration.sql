-- A person may snooze an issue. An issue counts the companies whose lists are late for its reason; older processes leave that at 0.
ALTER TABLE "muster"."issues"
  ADD COLUMN "late" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "late_told" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "snoozed_until" TIMESTAMPTZ(6),
  ADD COLUMN "snooze_reason" TEXT,
  ADD COLUMN "snoozed_by" TEXT,
  ADD COLUMN "snoozed_companies" INTEGER;
