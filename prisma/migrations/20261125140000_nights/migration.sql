-- How each night went, and how many rows a list had at each: past nights are read, and not counted anew.

-- CreateTable
CREATE TABLE "muster"."nights" (
    "night" DATE NOT NULL,
    "environment" TEXT NOT NULL,
    "began_at" TIMESTAMPTZ(6) NOT NULL,
    "due" INTEGER NOT NULL,
    "finished" INTEGER NOT NULL,
    "succeeded" INTEGER NOT NULL,
    "failed" INTEGER NOT NULL,
    "cancelled" INTEGER NOT NULL,
    "lists" INTEGER NOT NULL,
    "verified" INTEGER NOT NULL,
    "unverified" INTEGER NOT NULL,
    "inserted" BIGINT NOT NULL,
    "updated" BIGINT NOT NULL,
    "deleted" BIGINT NOT NULL,
    "started_at" TIMESTAMPTZ(6),
    "finished_at" TIMESTAMPTZ(6),
    "settled" BOOLEAN NOT NULL,

    CONSTRAINT "nights_pkey" PRIMARY KEY ("night","environment")
);

-- AlterTable
ALTER TABLE "muster"."walks" ADD COLUMN "records" INTEGER;
