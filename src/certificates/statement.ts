import { z } from 'zod';

const Digest = z.string().regex(/^[0-9a-f]{64}$/);
const Time = z.iso.datetime();
const Count = z.int().min(0);

/** What a certificate says of one verified walk. Members may be added; none changes its meaning. */
export const Statement = z.object({
  environment: z.string(),
  company_id: z.string(),
  resource: z.string(),
  run_id: z.string(),
  walk_id: z.string(),
  /** Why the walk is verified (docs/verification.md). */
  proof: z.string(),
  started_at: Time,
  finished_at: Time,
  /** Every record that existed from then until the walk had read the list to its end was received. */
  verified_at: Time,
  /** Records that its last pass received, and what the service said that there are, where it says so. */
  received: Count,
  total_records: Count.nullable(),
  /** Living rows of the list in the mirror, following the walk. */
  records: Count,
  /** The rows of them that an open hold keeps from being deleted. Certificates of earlier versions do not say it. */
  held: Count.optional(),
  inserted: Count,
  updated: Count,
  unchanged: Count,
  deleted: Count,
  /** The list's changes with numbers behind `after`, up to and including `through`, lie between the certificate before and this one. */
  feed: z.object({ after: Count, through: Count }),
  /** Fingerprint of the catalogue entry. */
  catalogue: Digest,
  /** The grant of the company under which the walk has received the list. Certificates of earlier versions do not say it. */
  grant_number: Count.optional(),
  /** SHA-256 of the text of the certificate before it of the same list; null for the first. */
  previous: Digest.nullable(),
});
export type Statement = z.output<typeof Statement>;

/** The part of a signed manifest that is checked of an export (docs/export.md), which says more. */
export const ManifestClaims = z.object({
  /** The name of the file in its folder; a stream has none. */
  file: z.string().optional(),
  resource: z.string(),
  rows: Count,
  /** SHA-256 of the file's bytes. */
  sha256: Digest,
  lists: z.array(
    z.object({
      environment: z.string(),
      company_id: z.string(),
      verified_at: Time.nullable(),
      /** Compact JWS: the newest certificate of the list, or none. */
      certificates: z.array(z.string()),
    }),
  ),
});
export type ManifestClaims = z.output<typeof ManifestClaims>;
