-- Tokens for people and programs, each with a name and a role. Of a token, only its hash is kept. A deleted one keeps its row for as long as
-- the audit is kept.
CREATE TABLE "muster"."named_tokens" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "seq" BIGSERIAL NOT NULL,
    "name" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "created_by" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(6),
    "last_used_at" TIMESTAMPTZ(6),
    "revoked_at" TIMESTAMPTZ(6),

    CONSTRAINT "named_tokens_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "named_tokens_token_hash_key" ON "muster"."named_tokens"("token_hash");

-- Prisma's schema cannot express these: the audit tells tokens apart by their names, and a list shows the tokens that are not deleted.
CREATE UNIQUE INDEX "named_tokens_living_name" ON "muster"."named_tokens"(lower("name")) WHERE "revoked_at" IS NULL;
CREATE INDEX "named_tokens_living" ON "muster"."named_tokens"("seq") WHERE "revoked_at" IS NULL;
