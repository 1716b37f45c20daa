-- Who is signed in to the control room. Of the cookie only a hash is kept.
CREATE TABLE "muster"."sessions" (
    "id_hash" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "token_id" UUID,
    "token_proof" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT now(),
    "seen_at" TIMESTAMPTZ(6) NOT NULL DEFAULT now(),

    CONSTRAINT "sessions_pkey" PRIMARY KEY ("id_hash")
);

-- CreateIndex
CREATE INDEX "sessions_seen_at_idx" ON "muster"."sessions"("seen_at");
