-- The last sync of a company that no schedule of a list has made: a list that comes every ten minutes has 144 runs between two nights.

-- This is beyond the schema language of Prisma.
CREATE INDEX "runs_without_schedules" ON "muster"."runs"("environment", "company_id", "seq") WHERE "kind" = 'sync' AND "trigger" <> 'scheduled';
