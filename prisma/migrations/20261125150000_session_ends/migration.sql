-- When a session ends, however much it is used: a person who signed in by OpenID Connect is asked for again earlier than a token. The default is for
-- processes of the version before, which know one limit.
ALTER TABLE "muster"."sessions" ADD COLUMN "ends_at" TIMESTAMPTZ(6) NOT NULL DEFAULT now() + interval '24 hours';
UPDATE "muster"."sessions" SET "ends_at" = "created_at" + interval '24 hours';
