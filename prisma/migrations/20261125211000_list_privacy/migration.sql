-- Under which privacy rules the rows of a list were stored, what of a change of these rules is still to be done, and which rules found nothing.
ALTER TABLE "muster"."lists" ADD COLUMN "privacy" JSONB,
  ADD COLUMN "privacy_stage" TEXT,
  ADD COLUMN "unmatched_rules" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- What follows is beyond the schema language of Prisma.

ALTER TABLE "muster"."lists" ADD CONSTRAINT "lists_privacy_stage" CHECK ("privacy_stage" IN ('rewrite', 'walk'));

-- Both are few, and looked for every few seconds.
CREATE INDEX "lists_privacy_stage" ON "muster"."lists"("environment", "company_id", "resource") WHERE "privacy_stage" IS NOT NULL;
CREATE INDEX "lists_unmatched_rules" ON "muster"."lists"("environment", "company_id", "resource") WHERE "unmatched_rules" <> '{}';
