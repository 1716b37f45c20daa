-- The ETag of a page's answer, so that the next walk can ask whether it still is the answer.
ALTER TABLE muster.walk_pages ADD COLUMN answer jsonb;
