-- What a person should know of why a walk proves nothing: the member that was seen, and the line for the catalogue.
ALTER TABLE "muster"."walks" ADD COLUMN "unverified_detail" TEXT;
