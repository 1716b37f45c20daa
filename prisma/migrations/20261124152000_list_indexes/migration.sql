-- A page of companies or runs is read off an index, whichever filters are given: its order is that of the index behind the columns that the
-- filters fix. Runs of one company in a given state are few enough to be read off all runs of that company.

CREATE INDEX "connections_status_environment_company_id_idx" ON "muster"."connections"("status", "environment", "company_id");
CREATE INDEX "runs_environment_seq_idx" ON "muster"."runs"("environment", "seq");
CREATE INDEX "runs_environment_status_seq_idx" ON "muster"."runs"("environment", "status", "seq");
CREATE INDEX "runs_company_id_seq_idx" ON "muster"."runs"("company_id", "seq");
