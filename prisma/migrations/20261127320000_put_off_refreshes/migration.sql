-- A refresh that was answered with an error without an explanation, or whose answer was lost, is put off for longer and longer, and ends no authorization.
ALTER TABLE "muster"."tokens" ADD COLUMN "put_offs" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "muster"."tokens" ADD COLUMN "hastened_until" TIMESTAMPTZ(6);
ALTER TABLE "muster"."tokens" ADD COLUMN "not_before" TIMESTAMPTZ(6);
ALTER TABLE "muster"."tokens" ADD COLUMN "last_status" INTEGER;
ALTER TABLE "muster"."tokens" ADD COLUMN "last_error" TEXT;

-- A token that is refused everywhere is judged a second time before it ends an authorization.
ALTER TABLE "muster"."tokens" ADD COLUMN "refused_at" TIMESTAMPTZ(6);
ALTER TABLE "muster"."tokens" ADD COLUMN "witness" TEXT;

-- An answer that the release before has lost is the first of its company's. That release counts to 2 and gives up: it does so no more where a process of it still runs.
UPDATE "muster"."tokens" SET "put_offs" = 1 WHERE "ambiguous_attempts" > 0 AND "transient_failures" > 0;
UPDATE "muster"."tokens" SET "ambiguous_attempts" = 1 WHERE "ambiguous_attempts" > 1;

-- What follows is beyond the schema language of Prisma.

-- The text of a service is kept only where it can hold no secret.
ALTER TABLE "muster"."tokens" ADD CONSTRAINT "tokens_last_error_is_a_code" CHECK ("last_error" ~ '^[a-z_]{1,40}$');

-- Each grant looks for the refreshes of its environment that were put off: mostly there are none.
CREATE INDEX "tokens_failing" ON "muster"."tokens"("environment", "refresh_at") WHERE "transient_failures" > 0;
