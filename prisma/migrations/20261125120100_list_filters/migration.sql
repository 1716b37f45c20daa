-- Lists are read off an index, whichever filters are given. An index over several columns serves a filter on some of them, too: the values that
-- the others may have are few, and are looked up one by one (src/db/newest-page.ts). By -seq, which no other index knows: by seq, PostgreSQL would
-- rather read the whole table in the order of its rows, since it takes rows that stand elsewhere for dear.

CREATE INDEX "runs_by_filters" ON "muster"."runs"("environment", "trigger", "status", (-"seq"));
CREATE INDEX "runs_created_at_idx" ON "muster"."runs"("created_at");
CREATE INDEX "holds_company_id_seq_idx" ON "muster"."holds"("company_id", "seq");
CREATE INDEX "holds_by_filters" ON "muster"."holds"("environment", "status", (-"seq"));
CREATE INDEX "notifications_company_id_seq_idx" ON "muster"."notifications"("company_id", "seq");
CREATE INDEX "notifications_by_filters" ON "muster"."notifications"("environment", "type", "status", (-"seq"));

-- Pages of one walk's rejected records. A walk that rejected nothing is in no index for it, so that most updates of walks touch none.
CREATE INDEX "rejected_records_walk_id_id_idx" ON "muster"."rejected_records"("walk_id", "id");
DROP INDEX "muster"."rejected_records_walk_id_idx";
CREATE INDEX "walks_that_rejected" ON "muster"."walks"("environment", "company_id", "resource") WHERE "rejected" > 0;

-- Walks that did not prove their list, by which a list of companies with the worst first knows them.
CREATE INDEX "walks_that_proved_nothing" ON "muster"."walks"("run_id", "resource")
  WHERE "error" IS NOT NULL OR "unverified_reason" IS NOT NULL;
