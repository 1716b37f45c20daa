-- A page's hashes stand whole in its row, under the names that the code has for them. Until now a page in which few texts changed kept only
-- those, beside the hashes of an earlier page (base_id).

-- What referred to an earlier page has no hashes any more: the next walk of such a list compares everything, once.
UPDATE "muster"."walks" w SET "reusable" = false
WHERE "reusable" AND EXISTS (
  SELECT 1 FROM "muster"."walk_pages" p JOIN "muster"."page_contents" c ON c."id" = p."content_id"
  WHERE p."walk_id" = w."id" AND c."base_id" IS NOT NULL
);
-- So does a walk that was under way and went by such a list.
UPDATE "muster"."walks" w SET "reference_walk_id" = NULL
FROM "muster"."walks" r WHERE r."id" = w."reference_walk_id" AND NOT r."reusable";

-- RenameTable
ALTER TABLE "muster"."page_contents" RENAME TO "page_snapshots";
ALTER TABLE "muster"."page_snapshots" RENAME CONSTRAINT "page_contents_pkey" TO "page_snapshots_pkey";
ALTER TABLE "muster"."page_snapshots" RENAME CONSTRAINT "page_contents_keys_id_fkey" TO "page_snapshots_keys_id_fkey";
ALTER INDEX "muster"."page_contents_environment_company_id_resource_idx" RENAME TO "page_snapshots_environment_company_id_resource_idx";
ALTER INDEX "muster"."page_contents_keys_id_idx" RENAME TO "page_snapshots_keys_id_idx";
ALTER SEQUENCE "muster"."page_contents_id_seq" RENAME TO "page_snapshots_id_seq";

-- AlterTable
ALTER TABLE "muster"."page_snapshots" RENAME COLUMN "texts" TO "row_hashes";
ALTER TABLE "muster"."page_snapshots" ALTER COLUMN "row_hashes" DROP NOT NULL;
UPDATE "muster"."page_snapshots" SET "row_hashes" = NULL WHERE "base_id" IS NOT NULL;
ALTER TABLE "muster"."page_snapshots" DROP COLUMN "base_id";

ALTER TABLE "muster"."walk_pages" RENAME COLUMN "content_id" TO "snapshot_id";
ALTER TABLE "muster"."walk_pages" RENAME CONSTRAINT "walk_pages_content_id_fkey" TO "walk_pages_snapshot_id_fkey";
ALTER INDEX "muster"."walk_pages_content_id_idx" RENAME TO "walk_pages_snapshot_id_idx";

ALTER TABLE "muster"."walks" RENAME COLUMN "reference_walk_id" TO "baseline_walk_id";
