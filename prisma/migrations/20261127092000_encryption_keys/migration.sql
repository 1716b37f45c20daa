-- Which key stands behind an id of MUSTER_ENCRYPTION_KEYS, so that another one under the same id is noticed before it encrypts anything.
CREATE TABLE "muster"."encryption_keys" (
    "id" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,

    CONSTRAINT "encryption_keys_pkey" PRIMARY KEY ("id")
);
