import { z } from 'zod';

const Digest = z.string().regex(/^[0-9a-f]{64}$/);
const Time = z.iso.datetime();
const Count = z.int().min(0);

/** The statement of a certificate about one verified walk. Members may be added; none changes its meaning. */
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
  /** Every record that existed from this time until the end of the walk was received. */
  verified_at: Time,
  /** Records received by the last pass, and the total that the service named, if it did. */
  received: Count,
  total_records: Count.nullable(),
  /** Living rows of the list in the mirror after the walk. */
  records: Count,
  /** How many of them an open hold keeps from deletion. Absent in certificates of earlier versions. */
  held: Count.optional(),
  inserted: Count,
  updated: Count,
  unchanged: Count,
  deleted: Count,
  /** The list's changes since the certificate before: their numbers are greater than `after` and at most `through`. */
  feed: z.object({ after: Count, through: Count }),
  /** Fingerprint of the catalogue entry. */
  catalogue: Digest,
  /** The grant under which the walk received the list. Absent in certificates of earlier versions. */
  grant_number: Count.optional(),
  /** SHA-256 of the text of the list's certificate before this one; null for the first. */
  previous: Digest.nullable(),
});
export type Statement = z.output<typeof Statement>;

/** The part of a signed manifest that is checked. A manifest has more members (docs/export.md). */
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
