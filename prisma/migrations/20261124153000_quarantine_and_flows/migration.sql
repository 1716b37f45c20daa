-- Why a refresh token is in quarantine, which link brought it, and the hash of the token that it replaced.
ALTER TABLE "muster"."quarantined_tokens"
  ADD COLUMN "reason" TEXT NOT NULL DEFAULT 'unknown',
  ADD COLUMN "link_id" UUID,
  ADD COLUMN "successor_of" TEXT;

-- The authorization flows under way: states are random, and kept as hashes.
CREATE TABLE "muster"."authorization_flows" (
    "state_hash" TEXT NOT NULL,
    "link_id" UUID NOT NULL,
    "epoch" INTEGER NOT NULL,
    "key_id" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(6) NOT NULL,
    "ended_at" TIMESTAMPTZ(6),

    CONSTRAINT "authorization_flows_pkey" PRIMARY KEY ("state_hash")
);
CREATE INDEX "authorization_flows_link_id_started_at_idx" ON "muster"."authorization_flows"("link_id", "started_at");
CREATE INDEX "authorization_flows_started_at_idx" ON "muster"."authorization_flows"("started_at");
ALTER TABLE "muster"."authorization_flows" ADD CONSTRAINT "authorization_flows_link_id_fkey"
  FOREIGN KEY ("link_id") REFERENCES "muster"."connect_links"("id") ON DELETE CASCADE ON UPDATE CASCADE;
