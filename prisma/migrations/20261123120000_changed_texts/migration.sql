-- AlterTable
ALTER TABLE "muster"."page_contents" ADD COLUMN "base_id" BIGINT;

-- CreateIndex
CREATE INDEX "page_contents_base_id_idx" ON "muster"."page_contents"("base_id");

-- AddForeignKey
ALTER TABLE "muster"."page_contents" ADD CONSTRAINT "page_contents_base_id_fkey" FOREIGN KEY ("base_id") REFERENCES "muster"."page_contents"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
