-- The onboarded companies, with name and status as `GET /api/companies` gives them. The name is null until the company's own record was read.
CREATE VIEW "warehouse"."companies" AS
SELECT c."environment", c."company_id", m."name", c."status"
FROM "muster"."connections" c
LEFT JOIN "mirror"."companies" m ON m."environment" = c."environment" AND m."company_id" = c."company_id";

-- What the views of facts and their columns are. Views of lists get their comments when Muster makes them.
DO $do$ DECLARE "found" RECORD; BEGIN
  FOR "found" IN
    SELECT CASE WHEN d."column" IS NULL THEN format('COMMENT ON VIEW warehouse.%I IS %L', d."view", d."text")
      ELSE format('COMMENT ON COLUMN warehouse.%I.%I IS %L', d."view", d."column", d."text") END AS "statement"
    FROM (VALUES
      ('companies', NULL, 'The onboarded companies.'),
      ('companies', 'name', 'The company''s name, from its own record. Null until that was read.'),
      ('companies', 'status', 'active, reauthorization_required or paused.'),
      ('lists', NULL, 'Each list of each company: when it was last proved complete, and whether that is too long ago.'),
      ('lists', 'last_verified_at', 'As of when the list was last proved complete. Null if it never was.'),
      ('lists', 'records', 'Living records at the last proof.'),
      ('lists', 'is_late', 'Whether the list was not proved for STALE_AFTER_HOURS. False while the company is paused, and for a list that it does not have.'),
      ('lists', 'unverified_since', 'Since when the newest walks ended without a proof. Null after a proof.'),
      ('lists', 'last_run_id', 'The last run that read the list.'),
      ('lists', 'company_status', 'active, reauthorization_required or paused.'),
      ('lists', 'grant_number', 'The grant under which the list was last proved.'),
      ('lists', 'unavailable_since', 'Since when the company is known not to have the list.'),
      ('runs', NULL, 'The syncs of companies.'),
      ('runs', 'trigger', 'Why the run was started.'),
      ('runs', 'mode', 'resume goes on with unfinished walks, full reads everything from the start.'),
      ('runs', 'status', 'queued, running, succeeded, failed or cancelled.'),
      ('runs', 'attempts', 'How often a worker has taken the run.'),
      ('runs', 'error_code', 'The code of the error that ended the run.'),
      ('walks', NULL, 'The lists that runs have read.'),
      ('walks', 'status', 'queued, running, succeeded, failed or cancelled.'),
      ('walks', 'verified', 'Whether the walk proved its list complete.'),
      ('walks', 'proof', 'The kind of proof.'),
      ('walks', 'unverified_reason', 'Why the walk proved nothing.'),
      ('walks', 'pages', 'Pages received.'),
      ('walks', 'passes', 'How often the list was read in this walk.'),
      ('walks', 'received', 'Records received.'),
      ('walks', 'inserted', 'Records that were new.'),
      ('walks', 'updated', 'Records that had changed.'),
      ('walks', 'unchanged', 'Records that were the same.'),
      ('walks', 'deleted', 'Records that were gone.'),
      ('walks', 'rejected', 'Records that could not be mirrored.'),
      ('walks', 'duplicates', 'Records received more than once.'),
      ('walks', 'total_records', 'The number of records that the service stated.'),
      ('walks', 'resumed', 'Whether the walk went on from a checkpoint.'),
      ('walks', 'error_code', 'The code of the error that ended the walk.'),
      ('barriers', NULL, 'The verified walks: with every change up to and including seq, the list is complete as of verified_at.'),
      ('barriers', 'seq', 'The number of the last change that belongs to the proved list.'),
      ('barriers', 'verified_at', 'As of when the list was complete.'),
      ('barriers', 'records', 'Living records of the proved list.'),
      ('barriers', 'number', 'The order in which barriers became known: read on after the last one that you have.'),
      ('barriers', 'grant_number', 'The grant under which the list was proved.'),
      ('feed', NULL, 'What is kept of the change feed: one row.'),
      ('feed', 'first_seq', 'The number of the first change that is kept.'),
      ('feed', 'last_seq', 'The number of the last change.'),
      ('feed', 'kept_since', 'When the first kept change was made.'),
      ('feed', 'feed', 'The id of the feed. Another id means that the feed started again: read everything again.'),
      ('as_of_limits', NULL, 'The lists whose past is not all kept.'),
      ('as_of_limits', 'answered_from', 'The first instant for which the as_of function of the list answers.'),
      ('as_of_limits', 'answered_from_seq', 'The first number of the feed for which the as_of_seq function of the list answers.'),
      ('as_of_limits', 'cause', 'Why the past before is not answered: retention, removal or rules (privacy).'),
      ('columns', NULL, 'The columns of the typed views, one row for each key of the records that has a column.'),
      ('columns', 'column', 'The column''s name. It never changes.'),
      ('columns', 'path', 'The key in the record, and the keys inside it.'),
      ('columns', 'type', 'The column''s type. It never changes.'),
      ('columns', 'declared', 'The type that the catalogue declares for the key. Null where it declares none.'),
      ('columns', 'view', 'The view that has the column: the list''s own, or that of an array''s elements, whose paths begin in the element.'),
      ('columns', 'position', 'The order in which columns were added.'),
      ('columns', 'has_text', 'Whether values that do not fit are in a column of the name with __text.'),
      ('columns', 'first_seen_at', 'When a record with the key was first seen.'),
      ('columns', 'last_seen_at', 'When a record with the key was last seen.'),
      ('columns', 'values', 'Values seen, nulls excluded.'),
      ('columns', 'nulls', 'Nulls seen.'),
      ('columns', 'misfits', 'Values seen that do not fit the type.')
    ) AS d("view", "column", "text")
    WHERE d."column" IS NULL OR EXISTS (
      SELECT FROM pg_attribute WHERE attrelid = format('warehouse.%I', d."view")::regclass AND attname = d."column" AND attnum > 0)
    UNION ALL
    SELECT format('COMMENT ON COLUMN %s.%I IS %L', c.oid::regclass, a.attname, d."text")
    FROM (VALUES
      ('environment', 'production or test.'),
      ('company_id', 'The company.'),
      ('resource', 'The list, by its name in the catalogue.'),
      ('run_id', 'The run, as in warehouse.runs.'),
      ('walk_id', 'The walk.'),
      ('created_at', 'When the run was asked for.'),
      ('started_at', 'When work on it began.'),
      ('finished_at', 'When it ended.')
    ) AS d("column", "text")
    JOIN pg_attribute a ON a.attname = d."column" AND a.attnum > 0
    JOIN pg_class c ON c.oid = a.attrelid AND c.relnamespace = 'warehouse'::regnamespace AND c.relkind = 'v'
    WHERE c.relname IN ('companies', 'lists', 'runs', 'walks', 'barriers', 'as_of_limits', 'columns')
  LOOP
    EXECUTE "found"."statement";
  END LOOP;
END $do$;
