-- A number that grows with every new owner is an epoch everywhere.
ALTER TABLE "muster"."tokens" RENAME COLUMN "fence" TO "epoch";
ALTER TABLE "muster"."connect_links" RENAME COLUMN "fence" TO "epoch";
