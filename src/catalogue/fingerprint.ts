import { createHash } from 'node:crypto';
import { identityOf } from '../privacy/rules.js';
import type { Endpoint } from './endpoint.js';

/**
 * Raise it when the pagers' states, or the ledger's hashes and digests, change their meaning: old checkpoints then start their
 * walks anew, and no walk goes by the ledger of an old one.
 */
const CHECKPOINT_FORMAT = 4;

/**
 * SHA-256 over what decides the meaning of a checkpoint, of a record's id and of its stored text. A checkpoint of another fingerprint is not
 * gone on with, and no walk goes by the ledger of one. `order`, `etag`, `deleteGuard` and `optional` are left out: they judge a walk or spare it work, and lead it nowhere else.
 */
export function fingerprint({ privacy, ...endpoint }: Endpoint): string {
  const { resource, method, base, path, query, body, pager, id, envelope, fields, parent } = endpoint;
  const constants = { base, query, body, fields, privacy: privacy && identityOf(privacy) };
  const parts = { format: CHECKPOINT_FORMAT, resource, method, path, pager, id, envelope, parent: parent ?? null, ...constants };
  return createHash('sha256').update(canonical(parts)).digest('hex');
}

/** JSON with the members of every object in order of their names. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
