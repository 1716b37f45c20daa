-- Which role the actor had. Older entries have none: their actor says enough.
ALTER TABLE "muster"."audit" ADD COLUMN "role" TEXT;

-- A page of the audit is read off an index, whichever filters are given: its order is that of the index behind the columns that the filters fix.
-- The indexes are over -id, since an order by id would let the planner read off the primary key instead: it takes entries of an actor to be
-- spread over the whole audit, and those of one who has left are not. Entries are written about as often as people click, so that many
-- indexes cost little. Those of one company are few enough to be read off all of it. Prisma's schema cannot express these.
DROP INDEX "muster"."audit_environment_company_id_idx";
CREATE INDEX "audit_company" ON "muster"."audit"("company_id", (-"id"));
CREATE INDEX "audit_environment" ON "muster"."audit"("environment", (-"id"));
CREATE INDEX "audit_action" ON "muster"."audit"("action", (-"id"));
CREATE INDEX "audit_action_environment" ON "muster"."audit"("action", "environment", (-"id"));
CREATE INDEX "audit_actor" ON "muster"."audit"("actor", (-"id"));
CREATE INDEX "audit_actor_environment" ON "muster"."audit"("actor", "environment", (-"id"));
CREATE INDEX "audit_actor_action" ON "muster"."audit"("actor", "action", (-"id"));
CREATE INDEX "audit_actor_action_environment" ON "muster"."audit"("actor", "action", "environment", (-"id"));
