-- A link is named by an id from which, with the server's key, its token can be made again; and its fence takes the place of a
-- stored state: a flow is started without writing anything (docs/decisions/0006-connect-links.md).
ALTER TABLE "muster"."connect_links"
  DROP CONSTRAINT "connect_links_pkey",
  DROP COLUMN "state_hash",
  DROP COLUMN "used_at",
  ADD COLUMN "id" UUID NOT NULL DEFAULT gen_random_uuid(),
  ADD COLUMN "fence" INTEGER NOT NULL DEFAULT 0,
  ADD CONSTRAINT "connect_links_pkey" PRIMARY KEY ("id");
ALTER TABLE "muster"."connect_links" ALTER COLUMN "id" DROP DEFAULT;

-- CreateIndex
CREATE UNIQUE INDEX "connect_links_token_hash_key" ON "muster"."connect_links"("token_hash");
