-- A POST that a caller named by an Idempotency-Key, and its answer. Neither the key nor the body is kept, only hashes of them.
CREATE TABLE "muster"."idempotency_keys" (
    "owner" TEXT NOT NULL,
    "key_hash" TEXT NOT NULL,
    "request_hash" TEXT NOT NULL,
    "epoch" INTEGER NOT NULL DEFAULT 1,
    "lease_until" TIMESTAMPTZ(6),
    "answer" TEXT,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "idempotency_keys_pkey" PRIMARY KEY ("owner", "key_hash")
);

CREATE INDEX "idempotency_keys_created_at_idx" ON "muster"."idempotency_keys"("created_at");
